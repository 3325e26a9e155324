// Body of the current request, from its head to its last byte: buffered for the policy, passed on as fast as the service accepts it and
// within the policy's limit, or discarded.
import {
  BODY_BAD,
  BODY_INCOMPLETE,
  type BodyScanner,
  type BodySink,
  ChunkedBody,
  type ChunkedForm,
  createBodyScanner,
  type Framing,
  type HeaderField,
  NO_BODY,
} from '@tunnel/http1';
import type { HeldBody } from '../../../policy/held-bodies.ts';
import { hasBodyOf } from '../../../upstream/upstream-request.ts';
import type { BodySource } from '../body-source.ts';

type BodyStep =
  | { readonly kind: 'more'; readonly goOn: boolean }
  | { readonly kind: 'done'; readonly next: number; readonly trailers: readonly HeaderField[]; readonly goOn: boolean }
  | { readonly kind: 'bad'; readonly reason: string; readonly goOn: boolean }
  /** The request body is larger than allowed. */
  | { readonly kind: 'over'; readonly goOn: boolean };

/** Result of processing bytes of a request body. `stopped`: the policy's body buffer is full. */
type IncomingStep = BodyStep | { readonly kind: 'stopped'; readonly goOn: true };

export class IncomingBody {
  #framing: Framing = NO_BODY;
  #isWhole = true;
  /** Parser of the request body. Null if the body is not wanted. */
  #body: RequestBody | null = null;
  #held: HeldBody | null = null;

  /** True if the request has no body, or its last byte has arrived. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Starts the body of a request, after its head. */
  begin(framing: Framing): void {
    this.#framing = framing;
    this.#isWhole = !hasBodyOf(framing);
  }

  /** Buffers the request body for the policy. */
  holdIn(held: HeldBody): void {
    this.#held = held;
    this.#body = this.#scanned('data', null);
    if (this.#body !== null) this.#body.taker = held;
  }

  /** Passes the body to a service. Returns null if the request has no body, or the body was buffered completely. */
  passOn(form: ChunkedForm, maxBytes: number | null): BodySource | null {
    this.#held = null;
    this.#body = this.#isWhole ? null : this.#scanned(form, maxBytes);
    return this.#body;
  }

  /** Discards the rest of the request body. */
  drop(): void {
    this.#held = null;
    this.#body = null;
  }

  take(bytes: Buffer, start: number, end: number, borrowed: boolean): IncomingStep {
    const body = this.#body;
    const held = this.#held;
    if (body === null) return DROPPED;
    // Buffered bytes of the body are copied, so the memory is not lent.
    const step = body.push(bytes, start, end, borrowed && held === null);
    if (step.kind === 'done') this.#isWhole = true;
    if (held === null) return step;
    if (step.kind === 'done') held.end(step.trailers);
    return step.kind === 'more' && held.isSettled ? STOPPED : { ...step, goOn: true };
  }

  #scanned(form: ChunkedForm, maxBytes: number | null): RequestBody | null {
    const scanner = createBodyScanner(this.#framing, form);
    return scanner === null ? null : new RequestBody(scanner, form, maxBytes);
  }
}

/** Parses a request body and writes its data to the current receiver. */
class RequestBody implements BodySink, BodySource {
  readonly form: ChunkedForm;
  taker: BodySource['taker'] = null;
  readonly #scanner: BodyScanner;
  /** Bytes of the body that the policy still allows. Chunks that pass unchanged are not limited. */
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

  /** Trailers of the request, complete when its body is complete. */
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
