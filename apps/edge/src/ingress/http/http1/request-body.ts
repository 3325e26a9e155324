// The body of the request at hand, from its head to its last byte: held until it may pass, passed on as far as the service takes it and the rules
// let it, or thrown away.
import {
  BODY_BAD,
  BODY_INCOMPLETE,
  type BodyScanner,
  type BodySink,
  ChunkedBody,
  type ChunkedForm,
  type Framing,
  type HeaderField,
  NO_BODY,
  scannerOf,
} from '@tunnel/http1';
import type { HeldBody } from '../../../policy/held-bodies.ts';
import { hasBodyOf } from '../../../upstream/upstream-request.ts';
import type { BodySource } from '../body-source.ts';

type BodyStep =
  | { readonly kind: 'more'; readonly goOn: boolean }
  | { readonly kind: 'done'; readonly next: number; readonly trailers: readonly HeaderField[]; readonly goOn: boolean }
  | { readonly kind: 'bad'; readonly reason: string; readonly goOn: boolean }
  /** It has more bytes than it may. */
  | { readonly kind: 'over'; readonly goOn: boolean };

/** `stopped`: the buffer that holds the body takes no more of it. */
type IncomingStep = BodyStep | { readonly kind: 'stopped'; readonly goOn: true };

export class IncomingBody {
  #framing: Framing = NO_BODY;
  #isWhole = true;
  /** null: nobody wants it. */
  #body: RequestBody | null = null;
  #held: HeldBody | null = null;

  /** There is none, or its last byte has come. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Behind a head. */
  begin(framing: Framing): void {
    this.#framing = framing;
    this.#isWhole = !hasBodyOf(framing);
  }

  /** What comes of it is kept there. */
  holdIn(held: HeldBody): void {
    this.#held = held;
    this.#body = this.#scanned('data', null);
    if (this.#body !== null) this.#body.taker = held;
  }

  /** It goes to a service; null: there is none, or it was held whole. */
  passOn(form: ChunkedForm, maxBytes: number | null): BodySource | null {
    this.#held = null;
    this.#body = this.#isWhole ? null : this.#scanned(form, maxBytes);
    return this.#body;
  }

  /** Nobody wants the rest. */
  drop(): void {
    this.#held = null;
    this.#body = null;
  }

  take(bytes: Buffer, start: number, end: number, borrowed: boolean): IncomingStep {
    const body = this.#body;
    const held = this.#held;
    if (body === null) return DROPPED;
    // What is held is copied.
    const step = body.push(bytes, start, end, borrowed && held === null);
    if (step.kind === 'done') this.#isWhole = true;
    if (held === null) return step;
    if (step.kind === 'done') held.end(step.trailers);
    return step.kind === 'more' && held.isSettled ? STOPPED : { ...step, goOn: true };
  }

  #scanned(form: ChunkedForm, maxBytes: number | null): RequestBody | null {
    const scanner = scannerOf(this.#framing, form);
    return scanner === null ? null : new RequestBody(scanner, form, maxBytes);
  }
}

/** The body while it is scanned: its data goes to the taker. */
class RequestBody implements BodySink, BodySource {
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
const DROPPED: IncomingStep = { kind: 'more', goOn: true };
const STOPPED: IncomingStep = { kind: 'stopped', goOn: true };
