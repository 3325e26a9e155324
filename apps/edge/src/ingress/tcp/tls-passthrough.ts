// Visitors of tls tunnels: found by the name in their ClientHello, and from there on a relayed connection as any of tcp.
import { subdomainOf } from '@tunnel/core';
import type { AcceptedConnection } from '@tunnel/http-shell';
import type { AcceptedSocket } from '@tunnel/mux';
import type { NameRegistry } from '../../routing/endpoints.ts';
import { routeAtName } from '../../routing/named-route.ts';
import type { Registry, Route } from '../../routing/registry.ts';
import type { Passthrough } from '../tls/tls-door.ts';
import type { Relay } from './relay.ts';

interface TlsPassthroughOptions {
  readonly domain: string;
  readonly tunnels: Pick<Registry, 'at'>;
  readonly names: Pick<NameRegistry, 'isHeld'>;
  readonly relay: Pick<Relay, 'carry'>;
}

export class TlsPassthrough implements Passthrough {
  readonly #given: TlsPassthroughOptions;

  constructor(options: TlsPassthroughOptions) {
    this.#given = options;
  }

  /** One host is served as http or as tls: both lease the same name, and one of either hides the wildcard over it. */
  routeFor(host: string): Route | undefined {
    const { domain, tunnels, names } = this.#given;
    const name = subdomainOf(host, domain);
    const route = name === null ? undefined : routeAtName(tunnels, name, (one) => names.isHeld(one));
    return route?.protocol === 'tls' ? route : undefined;
  }

  accept(visitor: AcceptedSocket, accepted: AcceptedConnection, route: Route, hello: Buffer): void {
    this.#given.relay.carry(visitor, accepted, route, hello);
  }
}
