// A request's body on its way in: from the visitor as it comes, or one that was held until its rules let it pass.
import { type ChunkedForm, type HeaderField } from '@tunnel/http1';
import { EDGE_LIMITS } from '../../limits.ts';
import type { HeldBody } from '../../policy/held-bodies.ts';
import { StallWatch } from './stall-watch.rules.ts';

/** a held body is passed on in pieces of this size, as fast as its service takes them */
export const POLICY_HELD_PIECE_BYTES = 64 * 1024;

/** The request's body on its way in. */
export interface BodySource {
  readonly form: ChunkedForm;
  /** Who gets it now. */
  taker: BodyTaker | null;
}

/** A service, or what holds the body before. */
export interface BodyTaker {
  /** Same rule as ByteDuplex.write. */
  writeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
}

/** A body that was held, on its way to the service: to the byte, in pieces, as fast as they are taken. */
export class HeldSource implements BodySource {
  /** Its chunks are gone: a service that must have some gets others. */
  readonly form = 'data';
  taker: BodySource['taker'] = null;
  readonly #held: HeldBody;
  readonly #stall = new StallWatch(EDGE_LIMITS.HTTP_STALLED_BODY_MS);
  #at = 0;
  #isPassing = false;

  constructor(held: HeldBody) {
    this.#held = held;
  }

  /** Its service takes nothing of it, whatever it answers meanwhile: what is held takes the room of others. */
  isStalled(nowMs: number): boolean {
    return this.#stall.isOver(nowMs, this.#held.body !== null, this.#at);
  }

  /** Nobody wants the rest. */
  drop(): void {
    this.#held.release();
  }

  /** All that its taker takes now; `onEnd` behind the last of it. The taker may change in between, and is given what follows. */
  pass(onEnd: (trailers: readonly HeaderField[]) => void): void {
    const { body, trailers } = this.#held;
    // One that drains at once would call again.
    if (body === null || this.#isPassing) return;
    this.#isPassing = true;
    let goesOn = true;
    while (goesOn && this.#at < body.length) {
      const from = this.#at;
      this.#at = Math.min(from + POLICY_HELD_PIECE_BYTES, body.length);
      // A copy where it must wait: the bytes before it may be waiting, too, and borrowed memory is written in front of.
      goesOn = this.taker?.writeBody(body, from, this.#at, false) ?? false;
    }
    this.#isPassing = false;
    if (this.#at < body.length) return;
    this.#held.release();
    onEnd(trailers);
  }
}
