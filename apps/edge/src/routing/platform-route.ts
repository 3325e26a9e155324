// Route of the platform's host, to the platform in the same server. The route is no tunnel: it is not listed in a registry, its requests
// are not captured, and rules for tunnels do not apply.

import { Fault } from '@tunnel/errors';
import type { ReportInternalError } from '@tunnel/mux';
import { MemberHealth } from '@tunnel/rules/tunnels';
import type { Clock, Secret } from '@tunnel/runtime';
import { TunnelCounters } from '../backend/tunnel-counters.ts';
import { createLocalDial, LocalUpstream } from '../upstream/local-upstream.ts';
import { OUTSIDE_POLICIES } from './route-policy.ts';
import type { Tunnel } from './tunnel.ts';

/** Address of the platform, passed to the edge when one server runs edge and platform. */
export interface PlatformAddress {
  readonly host: string;
  readonly port: number;
  /** Secret of this run of the server. Proves to the platform that details about a visitor come from the edge. */
  readonly secret: Secret;
}

export interface PlatformRouteOptions {
  /** Public host name of the platform in lower case. */
  readonly publicHost: string;
  readonly address: PlatformAddress;
  readonly clock: Clock;
  readonly report: ReportInternalError;
}

export class PlatformRoute {
  readonly route: Tunnel;
  readonly #host: string;

  constructor({ publicHost, address, clock, report }: PlatformRouteOptions) {
    this.#host = publicHost;
    this.route = {
      tunnelId: 'platform',
      sessionId: '',
      name: 'platform',
      label: publicHost,
      publicUrl: `https://${publicHost}`,
      protocol: 'http',
      endpoint: { kind: 'name', name: publicHost },
      group: null,
      assignedPort: null,
      http: { hostHeader: null, localProtocol: 'http1', capture: false },
      flowIdleSecs: null,
      proxyProtocol: null,
      alertWebhook: null,
      clientAddr: '',
      owner: { kind: 'operator' },
      connectedSince: clock.now(),
      counters: new TunnelCounters(),
      health: new MemberHealth(null),
      policy: OUTSIDE_POLICIES,
      upstream: new LocalUpstream({ dial: createLocalDial(address, clock), clock, report }),
      secret: address.secret,
      faultOf,
    };
  }

  /** Returns true for the platform's host. `host` is in lower case and without a port; a trailing dot is ignored. */
  isAt(host: string): boolean {
    const own = this.#host;
    return host === own || (host.length === own.length + 1 && host.endsWith('.') && host.startsWith(own));
  }
}

/** Replaces errors about a tunnel by PLATFORM_AWAY, because a page about tunnels would not help visitors of the platform. */
const faultOf = (fault: Fault): Fault => {
  switch (fault.code) {
    case 'TUNNEL_AWAY':
    case 'LOCAL_UNREACHABLE':
    case 'LOCAL_CLOSED':
    case 'LOCAL_MALFORMED':
    case 'LOCAL_TIMEOUT':
      return new Fault('PLATFORM_AWAY', {}, { cause: fault });
    default:
      return fault;
  }
};
