// Status events of a client, and their emitter.
import type { Fault } from '@tunnel/errors';
import type { PeerEvent } from './peers/peer-types.ts';
import type { TunnelEvent } from './tunnels/tunnel-event.ts';

export type StatusEvent =
  | { readonly type: 'connecting'; readonly server: string }
  | { readonly type: 'connected'; readonly sessionId: string; readonly resumed: boolean }
  /** The connection failed or was lost. The next attempt follows in `delayMs`. `planned` means that the edge announced its shutdown. */
  | {
      readonly type: 'reconnecting';
      readonly attempt: number;
      readonly delayMs: number;
      readonly reason: string;
      readonly planned: boolean;
    }
  /** The session is back and every tunnel was answered. `resumed` means that tunnel ids and ports are unchanged. */
  | { readonly type: 'reconnected'; readonly resumed: boolean }
  | TunnelEvent
  | PeerEvent
  | { readonly type: 'closing' }
  /** The last event. Has a fault if your program did not close the client. */
  | { readonly type: 'closed'; readonly fault?: Fault };

export type StatusListener = (event: StatusEvent) => void;

export class StatusEmitter {
  readonly #listeners = new Set<StatusListener>();

  /** Subscribes to the client's status events. Returns a function that ends the subscription. */
  on(listener: StatusListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  emit(event: StatusEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        // A throwing listener must not break the tunnel, so the error is rethrown outside.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
