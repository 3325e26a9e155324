// Notices an HTTP/2 session of which nobody says that it is over: after an error of the protocol nghttp2 sends a GOAWAY, reads and
// writes no more, and node 20 leaves session and socket open, for ever where a request is under way. The sign of it: a ping
// that is not even sent, although the socket has nothing to send. And one whose visitor has said goodbye and whose requests are all
// closed, while node waits for the end of a write that nobody takes any more. And one whose visitor went without having read all: node stops reading
// while it writes, and does not tell that the write has failed.
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { hasLostPeer, unsentBytes } from '@tunnel/mux';

/** without a byte of a visitor, after this it is looked whether its connection still works */
export const HTTP2_QUIET_MS = 30_000;

/** Looks in vain before it is certain: in the turns before, the ping may be on its way through node. */
const LOOKS = 3;

export class Http2Liveness {
  readonly #session: Http2Session;
  readonly #socket: Socket;
  #seenBytes = 0;
  #quietSinceMs: number;
  /** Of a ping that is due to be sent; null: none is. */
  #looksLeft: number | null = null;

  constructor(session: Http2Session, socket: Socket, nowMs: number) {
    this.#session = session;
    this.#socket = socket;
    this.#quietSinceMs = nowMs;
  }

  /** Once a second. true: the session is over. `areClosed`: whether all of its requests are, on both sides. */
  isOver(nowMs: number, areClosed: () => boolean): boolean {
    if (this.#session.destroyed) return false;
    if (unsentBytes(this.#socket) > 0 && hasLostPeer(this.#socket)) return true;
    const { bytesRead } = this.#socket;
    if (bytesRead !== this.#seenBytes) {
      this.#seenBytes = bytesRead;
      this.#rest(nowMs);
      return false;
    }
    if (this.#looksLeft !== null) return this.#look(nowMs, this.#looksLeft);
    if (nowMs - this.#quietSinceMs < HTTP2_QUIET_MS) return false;
    if (this.#session.closed && unsentBytes(this.#socket) === 0 && areClosed()) return true;
    this.#looksLeft = LOOKS;
    this.#session.ping(() => {});
    return false;
  }

  #look(nowMs: number, looksLeft: number): boolean {
    const isSent = (this.#session.state.outboundQueueSize ?? 0) === 0;
    // A visitor that does not read holds up the ping, too, and is left alone.
    if (isSent || unsentBytes(this.#socket) > 0) this.#rest(nowMs);
    else this.#looksLeft = looksLeft - 1;
    return this.#looksLeft === 0;
  }

  #rest(nowMs: number): void {
    this.#quietSinceMs = nowMs;
    this.#looksLeft = null;
  }
}
