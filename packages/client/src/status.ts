// What a client tells about itself while it runs: a closed list of events, and the one place that hands them out.
import type { Fault } from '@tunnel/errors';
import type { PeerEvent } from './peers/peer-types.ts';
import type { TunnelEvent } from './tunnels/tunnel-event.ts';

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
  | TunnelEvent
  | PeerEvent
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
