// What one HTTP/1.1 connection asks of services: one call after another, each with the body of its request.
import { type RequestHead, scannerOf } from '@tunnel/core';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker, FailedTry } from './asker.ts';
import { type Asking, askAnother, callTunnel } from './asking.ts';
import type { LocalAnswer } from './local-answer.ts';
import { type BodyStep, RequestBody } from './request-body.ts';
import { requestFormOf, type ServiceCall } from './service-call.ts';
import type { Caller, Dispatch, VisitorFacts, VisitorOwner } from './visitor.ts';

/** It is the asking of the request under way: those of one connection follow each other, so there is one object for all. */
export class Http1Calls implements Asking, Caller {
  readonly owner: VisitorOwner;
  readonly #dispatch: Dispatch;
  /** The first byte of its head has come. */
  startedMs = 0;
  facts: VisitorFacts;
  countedAddress: string | null = null;
  // Set by begin().
  head!: RequestHead;
  asker!: Asker;
  tried: Tunnel[] | null = null;
  failedSinceMs = 0;
  #call: ServiceCall | null = null;
  #body: RequestBody | null = null;

  constructor(dispatch: Dispatch, owner: VisitorOwner) {
    this.#dispatch = dispatch;
    this.facts = dispatch.facts;
    this.owner = owner;
  }

  get hasBody(): boolean {
    return this.#body !== null;
  }

  route(head: RequestHead): Tunnel | LocalAnswer {
    this.facts = this.owner.factsOf(this.#dispatch.facts, head);
    return this.owner.route(this.#dispatch, head, this);
  }

  begin(tunnel: Tunnel, head: RequestHead, asker: Asker): void {
    this.head = head;
    this.asker = asker;
    this.tried = null;
    const scanner = scannerOf(head.framing, requestFormOf(tunnel));
    this.#body = scanner === null ? null : new RequestBody(scanner);
    const call = callTunnel(this, tunnel);
    this.take(call);
    call.start();
  }

  take(call: ServiceCall): void {
    this.#call = call;
    if (this.#body !== null) this.#body.taker = call;
  }

  another(tried: readonly Tunnel[]): Tunnel | null {
    return this.owner.another(this.#dispatch, tried, this.hasBody);
  }

  /** false: there is nobody else to ask. */
  askAnother(failed: FailedTry): boolean {
    return askAnother(this, failed);
  }

  /** The head of an answer goes out, of the service's or of our own. */
  answered(status: number): void {
    const wholeMs = this.owner.now() - this.startedMs;
    // While a body is on its way the time is the visitor's.
    const serviceMs = this.#body === null ? (this.#call?.serviceMs ?? null) : null;
    this.owner.onResponse(status, wholeMs, serviceMs === null ? null : wholeMs - serviceMs);
  }

  /** undefined: nobody wants the body. */
  pushBody(bytes: Buffer, start: number, end: number, borrowed: boolean): BodyStep | undefined {
    return this.#body?.push(bytes, start, end, borrowed);
  }

  endBody(): void {
    this.#call?.endBody(this.#body?.trailers);
  }

  /** The visitor has taken what was written. */
  resume(): void {
    this.#call?.resume();
  }

  tick(nowMs: number): void {
    this.#call?.tick(nowMs);
  }

  /** The answer is out; what still comes of the body goes nowhere. */
  done(): void {
    this.switched();
    this.owner.release(this);
  }

  /** The request has become a bridge, and is counted as long as that lasts. */
  switched(): void {
    this.#call = null;
    this.#body = null;
  }

  abort(): void {
    this.#call?.abort();
    this.done();
  }
}
