// What waits to be sent to one HTTP/2 visitor and no credit bounds: heads, interim heads, trailers and answers of our own. node and nghttp2 take
// all of it at once and say only when a stream is over or everything is out, so it is counted until then. A service's data is bounded by the
// visitor's window and the credit of its stream.

import { StallWatch } from '../stall-watch.rules.ts';

/** heads and answers of our own that wait for one visitor; over it its next requests wait until these are out */
export const HTTP2_OUTBOUND_FULL_BYTES = 1024 * 1024;
/** over this, whatever else it does, the connection is cut */
export const HTTP2_OUTBOUND_MAX_BYTES = 4 * 1024 * 1024;
/** so is one that was full for so long and has taken nothing */
export const HTTP2_OUTBOUND_STALLED_MS = 30_000;

/** The connection as the count needs it. */
export interface OutboundSession {
  /** Nothing waits in HTTP/2 or below it. */
  isAllOut(): boolean;
  /** What the kernel has taken since the connection began. */
  readonly takenBytes: number;
}

/** What one request has in it. */
export class OutboundShare {
  epoch = 0;
  bytes = 0;
}

export class Http2Outbound {
  readonly #session: OutboundSession;
  readonly #onOverrun: () => void;
  readonly #full = new StallWatch(HTTP2_OUTBOUND_STALLED_MS);
  #queuedBytes = 0;
  /** Counts the moments when all was out: a share of before is out, too. */
  #epoch = 0;

  /** `onOverrun`: more than the connection is worth; it is to be cut. */
  constructor(session: OutboundSession, onOverrun: () => void) {
    this.#session = session;
    this.#onOverrun = onOverrun;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** The next requests wait until it has room. */
  get isFull(): boolean {
    if (this.#queuedBytes <= HTTP2_OUTBOUND_FULL_BYTES) return false;
    this.#settle();
    return this.#queuedBytes > HTTP2_OUTBOUND_FULL_BYTES;
  }

  /** So much of one request is about to be given to node. */
  add(share: OutboundShare, bytes: number): void {
    if (share.epoch !== this.#epoch) {
      share.epoch = this.#epoch;
      share.bytes = 0;
    }
    share.bytes += bytes;
    this.#queuedBytes += bytes;
    if (this.#queuedBytes <= HTTP2_OUTBOUND_MAX_BYTES) return;
    this.#settle();
    if (this.#queuedBytes > HTTP2_OUTBOUND_MAX_BYTES) this.#onOverrun();
  }

  /** What the request had is out, or will never be. */
  release(share: OutboundShare): void {
    if (share.epoch === this.#epoch) this.#queuedBytes -= share.bytes;
    share.bytes = 0;
  }

  /** Once a second. true: it is full and was not taken from for too long. */
  isStalled(nowMs: number): boolean {
    if (this.#queuedBytes > 0) this.#settle();
    const isFull = this.#queuedBytes > HTTP2_OUTBOUND_FULL_BYTES;
    return this.#full.isOver(nowMs, isFull, isFull ? this.#session.takenBytes : 0);
  }

  #settle(): void {
    if (!this.#session.isAllOut()) return;
    this.#queuedBytes = 0;
    this.#epoch += 1;
  }
}
