// Events of a client's tunnels.
import type { Fault } from '@tunnel/errors';
import type { DatagramWay, Tunnel } from './tunnel.ts';

export type TunnelEvent =
  | { readonly type: 'tunnel-opened'; readonly tunnel: Tunnel }
  /** The tunnel has a new address, because the client reconnected too late to get the old address. */
  | { readonly type: 'tunnel-moved'; readonly tunnel: Tunnel; readonly previousUrl: string }
  /** The edge refused the tunnel. `final` means that the tunnel has ended; otherwise the client retries. */
  | { readonly type: 'tunnel-error'; readonly tunnel: Tunnel; readonly fault: Fault; readonly final: boolean }
  /** The local service did not answer a visitor. At most one event every few seconds per tunnel. */
  | { readonly type: 'local-error'; readonly tunnel: Tunnel; readonly fault: Fault }
  /** The result of the local service's health check has changed. The edge is notified too. `reason` is empty if the service is healthy. */
  | {
      readonly type: 'health';
      readonly tunnel: Tunnel;
      readonly healthy: boolean;
      readonly reason: string;
      readonly consecutiveFailures: number;
    }
  /** The transport of a udp tunnel's datagrams between client and edge has changed. Also emitted when the tunnel opens. */
  | ({ readonly type: 'datagrams'; readonly tunnel: Tunnel } & DatagramWay);
