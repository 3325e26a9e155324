// What a client tells of its tunnels while it runs.
import type { Fault } from '@tunnel/errors';
import type { DatagramWay, Tunnel } from './tunnel.ts';

export type TunnelEvent =
  | { readonly type: 'tunnel-opened'; readonly tunnel: Tunnel }
  /** It came back too late for its old address. */
  | { readonly type: 'tunnel-moved'; readonly tunnel: Tunnel; readonly previousUrl: string }
  /** `final`: the tunnel is over; else it is asked for again by itself. */
  | { readonly type: 'tunnel-error'; readonly tunnel: Tunnel; readonly fault: Fault; readonly final: boolean }
  /** A visitor came and the local service did not answer. At most one every few seconds for each tunnel. */
  | { readonly type: 'local-error'; readonly tunnel: Tunnel; readonly fault: Fault }
  /** The health check of the local service has another outcome than before; the edge is told the same. `reason` is empty when it is healthy. */
  | {
      readonly type: 'health';
      readonly tunnel: Tunnel;
      readonly healthy: boolean;
      readonly reason: string;
      readonly consecutiveFailures: number;
    }
  /** Datagrams of a udp tunnel go another way between client and edge than before; told first when the tunnel opens. */
  | ({ readonly type: 'datagrams'; readonly tunnel: Tunnel } & DatagramWay);
