// The body of one request on its way in: scanned, and handed to the service as far as it takes it and the rules let it.
import {
  BODY_BAD,
  BODY_INCOMPLETE,
  type BodyScanner,
  type BodySink,
  ChunkedBody,
  type ChunkedForm,
  type HeaderField,
} from '@tunnel/core';
import type { BodySource } from '../proxied-request.ts';

export type BodyStep =
  | { readonly kind: 'more'; readonly goOn: boolean }
  | { readonly kind: 'done'; readonly next: number; readonly trailers: readonly HeaderField[]; readonly goOn: boolean }
  | { readonly kind: 'bad'; readonly reason: string; readonly goOn: boolean }
  /** It has more bytes than it may. */
  | { readonly kind: 'over'; readonly goOn: boolean };

export class RequestBody implements BodySink, BodySource {
  readonly form: ChunkedForm;
  taker: BodySource['taker'] = null;
  readonly #scanner: BodyScanner;
  /** Counted of data; chunks that pass as they came have no bound. */
  #leftBytes: number;
  #piece: Buffer = NOTHING;
  #borrowed = false;
  #goOn = true;

  constructor(scanner: BodyScanner, form: ChunkedForm, maxBytes: number | null = null) {
    this.form = form;
    this.#scanner = scanner;
    this.#leftBytes = maxBytes ?? Number.POSITIVE_INFINITY;
  }

  push(bytes: Buffer, start: number, end: number, borrowed: boolean): BodyStep {
    this.#piece = bytes;
    this.#borrowed = borrowed;
    this.#goOn = true;
    const next = this.#scanner.push(bytes, start, end, this);
    this.#piece = NOTHING;
    if (this.#leftBytes < 0) return OVER;
    if (next === BODY_BAD) return { kind: 'bad', reason: this.#scanner.problem ?? '', goOn: this.#goOn };
    if (next === BODY_INCOMPLETE) return this.#goOn ? MORE : WAIT;
    return { kind: 'done', next, trailers: this.#trailers, goOn: this.#goOn };
  }

  /** Complete when the body is. */
  get #trailers(): readonly HeaderField[] {
    return this.#scanner instanceof ChunkedBody ? this.#scanner.trailers : [];
  }

  forward(start: number, end: number): void {
    this.#leftBytes -= end - start;
    if (this.#leftBytes < 0) return;
    if (this.taker?.writeBody(this.#piece, start, end, this.#borrowed) === false) this.#goOn = false;
  }

  text(piece: string): void {
    const bytes = Buffer.from(piece, 'latin1');
    if (this.taker?.writeBody(bytes, 0, bytes.length, false) === false) this.#goOn = false;
  }
}

const NOTHING: Buffer = Buffer.alloc(0);
const MORE: BodyStep = { kind: 'more', goOn: true };
const OVER: BodyStep = { kind: 'over', goOn: true };
const WAIT: BodyStep = { kind: 'more', goOn: false };
