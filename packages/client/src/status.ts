// What a client tells about itself while it runs: a closed list of events, and the one place that hands them out.
import type { Fault } from '@tunnel/errors';
import type { PeerPath } from '@tunnel/peer';
import type { PeerConnection } from './peer-types.ts';
import type { DatagramWay, Tunnel } from './tunnel.ts';

export type StatusEvent =
  | { readonly type: 'connecting'; readonly server: string }
  | { readonly type: 'connected'; readonly sessionId: string; readonly resumed: boolean }
  /** The connection failed or was lost; the next try is in `delayMs`. `planned`: the edge said so beforehand. */
  | {
      readonly type: 'reconnecting';
      readonly attempt: number;
      readonly delayMs: number;
      readonly reason: string;
      readonly planned: boolean;
    }
  /** The session is back and every tunnel has its answer. `resumed`: with the same tunnel ids and ports. */
  | { readonly type: 'reconnected'; readonly resumed: boolean }
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
  | ({ readonly type: 'datagrams'; readonly tunnel: Tunnel } & DatagramWay)
  /** p2p, at the publisher: a subscriber has proven the secret, or is gone. */
  | {
      readonly type: 'peer';
      readonly tunnel: Tunnel;
      readonly peerId: string;
      readonly state: 'joined' | 'gone';
      readonly clientAddr: string;
      /** Of `gone`: `left`, `lost`, `dismissed`, `revoked`, or why the tunnel ended. */
      readonly reason: string;
    }
  /** p2p, at either end: new connections go another way than before, or for another reason. `name`: of the tunnel or the connection. */
  | ({ readonly type: 'path'; readonly name: string; readonly peerId: string } & PeerPath)
  /** The publisher is proven for the first time. */
  | { readonly type: 'peer-ready'; readonly connection: PeerConnection }
  /** `final`: the connection is over; else it is tried again by itself. */
  | { readonly type: 'peer-error'; readonly connection: PeerConnection; readonly fault: Fault; readonly final: boolean }
  | { readonly type: 'closing' }
  /** The last event. With a fault: the client did not end by itself. */
  | { readonly type: 'closed'; readonly fault?: Fault };

export type StatusListener = (event: StatusEvent) => void;

export class StatusEmitter {
  readonly #listeners = new Set<StatusListener>();

  /** Returns what ends the listening. */
  on(listener: StatusListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  emit(event: StatusEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        // A listener's mistake belongs to the program, not to the tunnel.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
