// Visitors of tls tunnels: routed by the server name in their ClientHello, then relayed like tcp connections.

import type { AcceptedConnection } from '@tunnel/http-shell';
import type { AcceptedSocket } from '@tunnel/mux';
import { endpointOfHost } from '@tunnel/rules/tunnels';
import { type HostSources, isHeldForTlsAt, routeAtHost } from '../../routing/named-route.ts';
import type { PlatformRoute } from '../../routing/platform-route.ts';
import type { PassedRoute, Passthrough } from '../tls/sni-router.ts';
import type { Relay } from './relay.ts';

interface TlsPassthroughOptions extends HostSources {
  readonly domain: string;
  /** Route to the platform. Undefined if the edge does not serve the platform's host. */
  readonly platform?: Pick<PlatformRoute, 'isAt'> | undefined;
  readonly relay: Pick<Relay, 'carry' | 'turnAwayFrom'>;
}

export class TlsPassthrough implements Passthrough {
  readonly #options: TlsPassthroughOptions;

  constructor(options: TlsPassthroughOptions) {
    this.#options = options;
  }

  /**
   * Finds the tls tunnel of a host. A host is served either as http or as tls, because both lease the same name; an exact name of either
   * protocol takes precedence over a wildcard.
   */
  routeFor(host: string): PassedRoute | undefined {
    // The platform's host is never passed through, although a customer's wildcard may cover it.
    if (this.#options.platform?.isAt(host) === true) return undefined;
    const endpoint = endpointOfHost(host, this.#options.domain);
    const route = routeAtHost(this.#options, endpoint);
    if (route !== undefined) return route.protocol === 'tls' ? route : undefined;
    return isHeldForTlsAt(this.#options, endpoint) ? 'away' : undefined;
  }

  accept(visitor: AcceptedSocket, accepted: AcceptedConnection, route: PassedRoute, hello: Buffer): void {
    const { relay } = this.#options;
    if (route === 'away') relay.turnAwayFrom(visitor);
    else relay.carry(visitor, accepted, route, hello);
  }
}
