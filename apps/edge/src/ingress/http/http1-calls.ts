// What one HTTP/1.1 connection asks of services: one call after another, each with the body of its request.
import { type RequestHead, scannerOf } from '@tunnel/core';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker } from './asker.ts';
import { type Asking, callTunnel } from './asking.ts';
import { type BodyStep, RequestBody } from './request-body.ts';
import { requestFormOf, type ServiceCall } from './service-call.ts';
import type { VisitorFacts, VisitorOwner } from './visitor.ts';

/** It is the asking of the request under way: those of one connection follow each other, so there is one object for all. */
export class Http1Calls implements Asking {
  readonly facts: VisitorFacts;
  readonly owner: VisitorOwner;
  /** The first byte of its head has come. */
  startedMs = 0;
  // Set by begin().
  head!: RequestHead;
  asker!: Asker;
  #call: ServiceCall | null = null;
  #body: RequestBody | null = null;

  constructor(facts: VisitorFacts, owner: VisitorOwner) {
    this.facts = facts;
    this.owner = owner;
  }

  get hasBody(): boolean {
    return this.#body !== null;
  }

  begin(tunnel: Tunnel, head: RequestHead, asker: Asker): void {
    this.head = head;
    this.asker = asker;
    const scanner = scannerOf(head.framing, requestFormOf(tunnel));
    this.#body = scanner === null ? null : new RequestBody(scanner);
    this.#take(callTunnel(this, tunnel));
  }

  #take(call: ServiceCall): void {
    this.#call = call;
    if (this.#body !== null) this.#body.taker = call;
    call.start();
  }

  /** The head of an answer goes out, of the service's or of our own. */
  answered(status: number): void {
    const wholeMs = this.owner.now() - this.startedMs;
    // While a body is on its way the time is the visitor's.
    const serviceMs = this.#body === null ? (this.#call?.serviceMs ?? null) : null;
    this.owner.onResponse(status, wholeMs, serviceMs === null ? null : wholeMs - serviceMs);
  }

  /** undefined: nobody wants the body. */
  pushBody(bytes: Buffer, start: number, end: number, lend: boolean): BodyStep | undefined {
    return this.#body?.push(bytes, start, end, lend);
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
    this.#call = null;
    this.#body = null;
  }

  abort(): void {
    this.#call?.abort();
    this.done();
  }
}
