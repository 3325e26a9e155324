// One request of an HTTP/2 visitor: where it goes, its body, and what becomes of it.
import type { ServerHttp2Stream } from 'node:http2';
import { type ChunkedForm, type HeaderField, type RequestHead, type ResponseHead } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker, FailedTry } from './asker.ts';
import { type Asking, askAnother, callTunnel } from './asking.ts';
import { Http2Answer } from './http2-answer.ts';
import { Http2Body } from './http2-body.ts';
import { type RawFields, requestHeadOf, valueIn } from './http2-fields.ts';
import { isLocalAnswer, type LocalAnswer } from './local-answer.ts';
import { refusalCodeOf } from './refusal-code.ts';
import { hasBodyOf, requestFormOf, type ServiceCall } from './service-call.ts';
import type { Caller, VisitorFacts, VisitorOwner } from './visitor.ts';

const UNASKED: StreamReason = { code: 'cancelled', text: 'protocols cannot be switched in HTTP/2' };

/** The visitor's connection, as its requests see it. */
export interface RequestingVisitor {
  readonly facts: VisitorFacts;
  readonly owner: VisitorOwner;
  route(head: RequestHead, caller: Caller): Tunnel | LocalAnswer;
  /** Another member for a request that those in `tried` did not get; null: there is none. */
  another(head: RequestHead, tried: readonly Tunnel[], hasBody: boolean): Tunnel | null;
  /** A service has answered a request for this authority. */
  onServed(head: RequestHead): void;
  /** Nothing more comes of it. `isTakenBack`: the visitor did not wait for the end of the answer. */
  onOver(request: Http2Request, isTakenBack: boolean): void;
}

export class Http2Request implements Asker, Asking, Caller {
  readonly bodyForm: ChunkedForm = 'data';
  readonly startedMs: number;
  // Set by begin(), before anything is asked.
  head!: RequestHead;
  facts: VisitorFacts;
  countedAddress: string | null = null;
  tried: Tunnel[] | null = null;
  failedSinceMs = 0;
  readonly #visitor: RequestingVisitor;
  readonly #stream: ServerHttp2Stream;
  readonly #answer: Http2Answer;
  #accept: string | null = null;
  #call: ServiceCall | null = null;
  #body: Http2Body | null = null;

  constructor(visitor: RequestingVisitor, stream: ServerHttp2Stream) {
    this.#visitor = visitor;
    this.#stream = stream;
    this.facts = visitor.facts;
    this.startedMs = visitor.owner.now();
    this.#answer = new Http2Answer(stream, (status) => this.#tell(status));
    // What went wrong is told by the close that follows; without a listener it would end the process.
    stream.on('error', () => {});
    stream.on('aborted', () => this.#leave());
    stream.on('close', () => this.#onClosed());
    stream.on('drain', () => this.#call?.resume());
  }

  get owner(): VisitorOwner {
    return this.#visitor.owner;
  }

  get asker(): Asker {
    return this;
  }

  get hasBody(): boolean {
    return this.#body !== null;
  }

  begin(raw: RawFields): void {
    const head = requestHeadOf(raw, !this.#stream.endAfterHeaders);
    this.#accept = valueIn(raw, 'accept');
    if (head.kind === 'problem') {
      this.#answerOwn({ fault: new Fault(refusalCodeOf(head.status), { reason: head.reason }) });
      return;
    }
    this.head = head;
    this.facts = this.owner.factsOf(this.facts, head);
    const route = this.#visitor.route(head, this);
    if (isLocalAnswer(route)) this.#answerOwn(route);
    else this.#ask(route);
  }

  #ask(tunnel: Tunnel): void {
    const { framing } = this.head;
    if (hasBodyOf(framing)) {
      const shape = { framing, inChunks: requestFormOf(tunnel) === 'chunks' };
      this.#body = new Http2Body(this.#stream, shape, (reason) => this.#onBadBody(reason));
    }
    const call = callTunnel(this, tunnel);
    this.take(call);
    call.start();
    if (this.#body === null) this.#stream.resume();
    // An answer of our own may be out already.
    else if (this.#call === null) this.#body.drop();
    else this.#body.start();
  }

  take(call: ServiceCall): void {
    this.#call = call;
    if (this.#body !== null) this.#body.call = call;
  }

  another(tried: readonly Tunnel[]): Tunnel | null {
    return this.#visitor.another(this.head, tried, this.hasBody);
  }

  #onBadBody(reason: string): void {
    this.#call?.abort();
    this.#fail(new Fault('HTTP_BAD_REQUEST', { reason }));
  }

  // ---- the response, from the service ----

  onInterim(head: ResponseHead): void {
    this.#answer.interim(head);
  }

  onHead(head: ResponseHead): void {
    this.#visitor.onServed(this.head);
    this.#answer.head(head);
  }

  onBody(bytes: Buffer, start: number, end: number): boolean {
    return this.#answer.body(bytes, start, end);
  }

  onText(): void {}

  onTrailers(trailers: readonly HeaderField[]): void {
    this.#answer.trailers(trailers);
  }

  onTurn(): void {}

  onDone(requestDone: boolean): void {
    this.#call = null;
    this.#end(requestDone);
  }

  onFailed(fault: Fault, failed: FailedTry | null): void {
    if (failed === null || this.#answer.isBegun || !askAnother(this, failed)) this.#fail(fault);
  }

  onSwitched(_head: ResponseHead, stream: MuxStream): void {
    stream.reset(UNASKED);
    this.#fail(new Fault('LOCAL_MALFORMED', { reason: UNASKED.text }));
  }

  onBodyDrain(): void {
    this.#body?.resume();
  }

  // ---- the answer ----

  #answerOwn(answer: LocalAnswer): void {
    const isWhole = this.#stream.endAfterHeaders;
    if (this.#answer.own(answer, this.#accept)) this.#end(isWhole);
  }

  #fail(fault: Fault): void {
    this.#call = null;
    if (this.#answer.isBegun) this.#answer.cut();
    else this.#answerOwn({ fault });
  }

  #end(requestDone: boolean): void {
    if (this.#stream.destroyed) return;
    if (!requestDone) this.#body?.drop();
    this.#answer.end(!requestDone);
  }

  #tell(status: number): void {
    const { owner } = this.#visitor;
    const wholeMs = owner.now() - this.startedMs;
    // While a body is on its way the time is the visitor's.
    const serviceMs = this.#body === null ? (this.#call?.serviceMs ?? null) : null;
    owner.onResponse(status, wholeMs, serviceMs === null ? null : wholeMs - serviceMs);
  }

  // ---- time and the end ----

  tick(nowMs: number): void {
    this.#call?.tick(nowMs);
  }

  #leave(): void {
    const call = this.#call;
    this.#call = null;
    call?.abort();
  }

  #onClosed(): void {
    const isTakenBack = this.#call !== null || (this.#stream.aborted && !this.#answer.isCut);
    this.#leave();
    this.owner.release(this);
    this.#visitor.onOver(this, isTakenBack);
  }
}
