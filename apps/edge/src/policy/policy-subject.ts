// The route that a visitor requested, and the details of the request, as needed by effects of rules. Created only for an effect, and
// every property is computed only when read.
import { hostOfAuthority } from '@tunnel/http1';
import { type Policy, type PolicyRequest } from '@tunnel/policy';
import { ownerKey, tenantKey } from '@tunnel/rules/tunnels';
import { isGroup, type Route, routeKeyOf } from '../routing/registry.ts';
import type { RoutePolicy } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { EffectSubject } from './policy-driver.ts';

/** Details of a request; or of a connection, for which only the address is known. */
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

  /**
   * Owner to which sessions are bound. For a group the hash of its key, so that the order in which members return after a restart does
   * not matter.
   */
  get owner(): string {
    const route = this.#route;
    return isGroup(route) ? `group ${route.keyHash}` : ownerKey(route.owner);
  }

  /**
   * Tenant charged for the work. For a group the tenant of the first connected member, so that an account has a single share for any
   * number of groups.
   */
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

  /**
   * The tunnel's public URL as reported to the client. For other host names, such as names below a wildcard, the URL that the visitor
   * requested.
   */
  get publicUrl(): string {
    const { host, scheme, authority } = this.#visit;
    const [tunnel] = this.#tunnels();
    const own = tunnel?.publicUrl ?? '';
    return hostOfAuthority(own.slice(own.indexOf('//') + 2)) === host ? own : `${scheme}://${authority}`;
  }
}
