// Counts queued bytes for an HTTP/2 visitor that no credit limits: heads, interim heads, trailers and responses of the edge. Node and
// nghttp2 accept any amount, and only report when a stream has closed or everything is sent, so bytes are counted until then. Data from a
// service is limited by the visitor's window and the credit of its stream.

import { StallWatch } from '../stall-watch.rules.ts';

/** Queued bytes of heads and edge responses for a visitor above which further requests of the visitor wait. */
export const HTTP2_OUTBOUND_FULL_BYTES = 1024 * 1024;
/** Bytes of heads and edge responses queued for an HTTP/2 visitor above which the connection is closed in any case. */
export const HTTP2_OUTBOUND_MAX_BYTES = 4 * 1024 * 1024;
/** Time after which a connection with a full queue is closed if the visitor has accepted nothing. */
export const HTTP2_OUTBOUND_STALLED_MS = 30_000;

/** Figures of an HTTP/2 connection needed to count its queued bytes. */
export interface OutboundSession {
  /** Returns whether nothing is queued in HTTP/2 or in the layers below. */
  isAllOut(): boolean;
  /** Bytes of the HTTP/2 connection accepted by the kernel since it began. */
  readonly takenBytes: number;
}

/** Bytes of a single HTTP/2 request's response that are queued for the visitor. */
export class OutboundShare {
  epoch = 0;
  bytes = 0;
}

export class Http2Outbound {
  readonly #session: OutboundSession;
  readonly #onOverrun: () => void;
  readonly #full = new StallWatch(HTTP2_OUTBOUND_STALLED_MS);
  #queuedBytes = 0;
  /** Incremented whenever everything was sent. Shares of an earlier epoch are sent as well. */
  #epoch = 0;

  /** `onOverrun` is called when the hard limit is exceeded; the connection must be closed. */
  constructor(session: OutboundSession, onOverrun: () => void) {
    this.#session = session;
    this.#onOverrun = onOverrun;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** True if further requests of the HTTP/2 connection must wait until the queue has room. */
  get isFull(): boolean {
    if (this.#queuedBytes <= HTTP2_OUTBOUND_FULL_BYTES) return false;
    this.#settle();
    return this.#queuedBytes > HTTP2_OUTBOUND_FULL_BYTES;
  }

  /** Counts bytes of a request that are about to be passed to Node. */
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

  /** Removes the bytes of a request, because they are sent or will never be. */
  release(share: OutboundShare): void {
    if (share.epoch === this.#epoch) this.#queuedBytes -= share.bytes;
    share.bytes = 0;
  }

  /** Returns true if the queue is full and the visitor has accepted nothing for too long. Called once a second. */
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
