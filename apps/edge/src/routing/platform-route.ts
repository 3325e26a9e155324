// The platform's host: one more route, to the platform of the same stack. It is nobody's tunnel: no registry lists it, nothing of it is captured, and no
// rules of tunnels hold there.

import { Fault } from '@tunnel/errors';
import type { ReportInternalError } from '@tunnel/mux';
import { MemberHealth } from '@tunnel/rules/tunnels';
import type { Clock, Secret } from '@tunnel/runtime';
import { TunnelCounters } from '../backend/tunnel-counters.ts';
import { createLocalDial, LocalUpstream } from '../upstream/local-upstream.ts';
import { OUTSIDE_POLICIES } from './route-policy.ts';
import type { Tunnel } from './tunnel.ts';

/** What a stack tells its edge of the platform. */
export interface PlatformAddress {
  readonly host: string;
  readonly port: number;
  /** Of this run: by it the platform believes what the edge says of visitors. */
  readonly secret: Secret;
}

export interface PlatformRouteOptions {
  /** In lower case. */
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

  /** `host` in lower case and without a port; one trailing dot makes no difference. */
  isAt(host: string): boolean {
    const own = this.#host;
    return host === own || (host.length === own.length + 1 && host.endsWith('.') && host.startsWith(own));
  }
}

/** A page about tunnels would help nobody here. */
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
