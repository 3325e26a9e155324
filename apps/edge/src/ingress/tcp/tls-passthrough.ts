// Visitors of tls tunnels: found by the name in their ClientHello, and from there on a relayed connection as any of tcp.

import type { AcceptedConnection } from '@tunnel/http-shell';
import type { AcceptedSocket } from '@tunnel/mux';
import { endpointOfHost } from '@tunnel/rules/tunnels';
import { type HostSources, isHeldForTlsAt, routeAtHost } from '../../routing/named-route.ts';
import type { PlatformRoute } from '../../routing/platform-route.ts';
import type { PassedRoute, Passthrough } from '../tls/tls-door.ts';
import type { Relay } from './relay.ts';

interface TlsPassthroughOptions extends HostSources {
  readonly domain: string;
  /** Absent: the platform's host is none of this edge's. */
  readonly platform?: Pick<PlatformRoute, 'isAt'> | undefined;
  readonly relay: Pick<Relay, 'carry' | 'turnAwayFrom'>;
}

export class TlsPassthrough implements Passthrough {
  readonly #given: TlsPassthroughOptions;

  constructor(options: TlsPassthroughOptions) {
    this.#given = options;
  }

  /** One host is served as http or as tls: both lease the same name, and one of either hides the wildcard over it. */
  routeFor(host: string): PassedRoute | undefined {
    // Somebody's wildcard may be over it.
    if (this.#given.platform?.isAt(host) === true) return undefined;
    const endpoint = endpointOfHost(host, this.#given.domain);
    const route = routeAtHost(this.#given, endpoint);
    if (route !== undefined) return route.protocol === 'tls' ? route : undefined;
    return isHeldForTlsAt(this.#given, endpoint) ? 'away' : undefined;
  }

  accept(visitor: AcceptedSocket, accepted: AcceptedConnection, route: PassedRoute, hello: Buffer): void {
    const { relay } = this.#given;
    if (route === 'away') relay.turnAwayFrom(visitor);
    else relay.carry(visitor, accepted, route, hello);
  }
}
