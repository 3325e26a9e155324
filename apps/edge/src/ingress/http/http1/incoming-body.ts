// The body of the request at hand, from its head to its last byte: held until it may pass, passed on, or thrown away.
import { type ChunkedForm, type Framing, NO_BODY, scannerOf } from '@tunnel/core';
import type { HeldBody } from '../../../policy/held-bodies.ts';
import { hasBodyOf } from '../../../upstream/upstream-request.ts';
import type { BodySource } from '../proxied-request.ts';
import { type BodyStep, RequestBody } from './request-body.ts';

/** `stopped`: what holds it wants no more of it. */
export type IncomingStep = BodyStep | { readonly kind: 'stopped'; readonly goOn: true };

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
    const [body, held] = [this.#body, this.#held];
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

const DROPPED: IncomingStep = { kind: 'more', goOn: true };
const STOPPED: IncomingStep = { kind: 'stopped', goOn: true };
