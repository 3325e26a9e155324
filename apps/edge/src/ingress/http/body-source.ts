// Sources of a request body: streamed from the visitor, or buffered until the policy let the request pass.
import { type ChunkedForm, type HeaderField } from '@tunnel/http1';
import { EDGE_LIMITS } from '../../limits.ts';
import type { HeldBody } from '../../policy/held-bodies.ts';
import { StallWatch } from './stall-watch.rules.ts';

/** Size of the pieces, in bytes, in which a buffered body is written to the service as fast as the service accepts data. */
export const POLICY_HELD_PIECE_BYTES = 64 * 1024;

/** Source of a visitor's request body, read by the connection to the service. */
export interface BodySource {
  readonly form: ChunkedForm;
  /** Current receiver of the request body. Null while no receiver is set. */
  taker: BodyTaker | null;
}

/** Receiver of a request's body: the service, or the buffer that holds the body for the policy. */
export interface BodyTaker {
  /** Writes a part of the body. Follows the rules of ByteDuplex.write for borrowed memory and back-pressure. */
  writeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
}

/** A buffered body on its way to the service: unchanged bytes, in pieces, as fast as the service accepts data. */
export class BufferedBody implements BodySource {
  /** The visitor's chunk boundaries are lost. A service that needs chunked encoding gets new chunks. */
  readonly form = 'data';
  taker: BodySource['taker'] = null;
  readonly #held: HeldBody;
  readonly #stall = new StallWatch(EDGE_LIMITS.HTTP_STALLED_BODY_MS);
  #at = 0;
  #isPassing = false;

  constructor(held: HeldBody) {
    this.#held = held;
  }

  /**
   * Reports whether the service has accepted no byte of the body for too long, even while responding. A buffered body occupies memory
   * shared with other requests.
   */
  isStalled(nowMs: number): boolean {
    return this.#stall.isOver(nowMs, this.#held.body !== null, this.#at);
  }

  /** Releases the buffer of the request body, because the rest is not needed. */
  drop(): void {
    this.#held.release();
  }

  /**
   * Writes as much as the taker accepts now, and calls `onEnd` after the last byte. If the taker changes meanwhile, the new taker gets the
   * rest.
   */
  pass(onEnd: (trailers: readonly HeaderField[]) => void): void {
    const { body, trailers } = this.#held;
    // Guards against recursion: a taker that drains at once would call pass() again.
    if (body === null || this.#isPassing) return;
    this.#isPassing = true;
    let goesOn = true;
    while (goesOn && this.#at < body.length) {
      const from = this.#at;
      this.#at = Math.min(from + POLICY_HELD_PIECE_BYTES, body.length);
      // The memory is not lent, so bytes that must wait are copied. Earlier bytes may still be queued, and a borrower may write a frame
      // header in front of borrowed memory.
      goesOn = this.taker?.writeBody(body, from, this.#at, false) ?? false;
    }
    this.#isPassing = false;
    if (this.#at < body.length) return;
    this.#held.release();
    onEnd(trailers);
  }
}
