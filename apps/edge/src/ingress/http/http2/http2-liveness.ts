// Detects dead HTTP/2 sessions that Node does not report, in three cases. (1) After a protocol error nghttp2 sends GOAWAY and stops reading
// and writing, but Node 20 leaves session and socket open, forever if a request is in progress. Sign: a ping stays unsent although the
// socket has nothing to send. (2) The visitor has sent GOAWAY and all requests are closed, but Node waits for a write that is never
// accepted. (3) The visitor disconnected before reading everything: Node does not read while writing, and does not report the failed write.
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { hasLostPeer, unsentBytes } from '@tunnel/mux';

/** Time without a byte from the visitor after which the connection is tested with a ping. */
export const HTTP2_QUIET_MS = 30_000;

/** Number of checks before an unsent ping counts as proof. During the first checks, the ping may still be on its way through Node. */
const LOOKS = 3;

export class Http2Liveness {
  readonly #session: Http2Session;
  readonly #socket: Socket;
  #seenBytes = 0;
  #quietSinceMs: number;
  /** Checks left for a ping that is not sent yet. Null if no ping is pending. */
  #looksLeft: number | null = null;

  constructor(session: Http2Session, socket: Socket, nowMs: number) {
    this.#session = session;
    this.#socket = socket;
    this.#quietSinceMs = nowMs;
  }

  /** Returns true if the session is dead. Called once a second. `areClosed` returns whether all requests are closed in both directions. */
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
    // A visitor that does not read delays the ping as well, and is not treated as dead.
    if (isSent || unsentBytes(this.#socket) > 0) this.#rest(nowMs);
    else this.#looksLeft = looksLeft - 1;
    return this.#looksLeft === 0;
  }

  #rest(nowMs: number): void {
    this.#quietSinceMs = nowMs;
    this.#looksLeft = null;
  }
}
