// What an effect is about: the route that a visitor came to, and how. Made where there is an effect, and nothing of it before it is asked for.
import { hostOfAuthority } from '@tunnel/http1';
import { type Policy, type PolicyRequest } from '@tunnel/policy';
import { ownerKey, tenantKey } from '@tunnel/rules/tunnels';
import { isGroup, type Route, routeKeyOf } from '../routing/registry.ts';
import type { RoutePolicy } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { EffectSubject } from './policy-driver.ts';

/** Of a request, or of a connection that nothing is known of but its address. */
export type Visit = Pick<PolicyRequest, 'host' | 'authority' | 'scheme' | 'address'>;

export class PolicySubject implements EffectSubject {
  readonly #route: Route;
  readonly #ofRoute: RoutePolicy | null;
  readonly #visit: Visit;

  constructor(route: Route, ofRoute: RoutePolicy | null, visit: Visit) {
    this.#route = route;
    this.#ofRoute = ofRoute;
    this.#visit = visit;
  }

  get served(): object {
    return this.#ofRoute ?? this.#route;
  }

  get policy(): Policy | null {
    return this.#ofRoute?.compiled.policy ?? null;
  }

  get routeKey(): string {
    return routeKeyOf(this.#route);
  }

  /** In a group its key: the order in which members come back after a restart does not matter. */
  get owner(): string {
    const route = this.#route;
    return isGroup(route) ? `group ${route.keyHash}` : ownerKey(route.owner);
  }

  /** Of a group whoever was first of those that are there: an account has one share, in however many groups it is. */
  get tenant(): string {
    const [tunnel] = this.#tunnels();
    return tunnel === undefined ? this.owner : tenantKey(tunnel.owner, this.routeKey);
  }

  #tunnels(): Iterable<Tunnel> {
    const route = this.#route;
    return isGroup(route) ? route.members() : [route];
  }

  get host(): string {
    return this.#visit.host;
  }

  get scheme(): 'http' | 'https' {
    return this.#visit.scheme;
  }

  get address(): string {
    return this.#visit.address;
  }

  /** Its own, as its client was told it; under another name, as with a wildcard, the one that the visitor came by. */
  get publicUrl(): string {
    const { host, scheme, authority } = this.#visit;
    const [tunnel] = this.#tunnels();
    const own = tunnel?.publicUrl ?? '';
    return hostOfAuthority(own.slice(own.indexOf('//') + 2)) === host ? own : `${scheme}://${authority}`;
  }
}
