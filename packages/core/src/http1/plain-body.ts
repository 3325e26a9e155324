// Bodies whose bytes need no reading: of a known length, or up to the end of the connection.
import { BODY_INCOMPLETE, type BodyScanner, type BodySink } from './body-scanner.ts';

export class LengthBody implements BodyScanner {
  readonly problem = null;
  #remaining: number;

  constructor(length: number) {
    this.#remaining = length;
  }

  get remaining(): number {
    return this.#remaining;
  }

  push(_bytes: Uint8Array, start: number, end: number, sink: BodySink): number {
    const stop = Math.min(end, start + this.#remaining);
    this.#remaining -= stop - start;
    if (stop > start) sink.forward(start, stop);
    return this.#remaining === 0 ? stop : BODY_INCOMPLETE;
  }
}

/** Ends with the connection: whoever sees its end says so. */
export class UntilCloseBody implements BodyScanner {
  readonly problem = null;

  push(_bytes: Uint8Array, start: number, end: number, sink: BodySink): number {
    if (end > start) sink.forward(start, end);
    return BODY_INCOMPLETE;
  }
}
