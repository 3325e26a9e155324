// One request of an HTTP/2 visitor and its answer: the service's, or one of our own.
import { constants, type ServerHttp2Stream } from 'node:http2';
import {
  type ChunkedForm,
  fieldValueOf,
  type HeaderField,
  type RequestHead,
  type ResponseHead,
  requestHeadFor,
} from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker } from './exchange.ts';
import { Http2Body } from './http2-body.ts';
import {
  ownFieldsOf,
  type RawFields,
  requestHeadOf,
  responseFieldsOf,
  trailerFieldsOf,
  valueIn,
} from './http2-fields.ts';
import { isLocalAnswer, type LocalAnswer, renderAnswer } from './local-answer.ts';
import { refusalCodeOf } from './refusal-code.ts';
import { callService, requestFormOf, type ServiceCall } from './service-call.ts';
import type { VisitorFacts, VisitorOwner } from './visitor.ts';

const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;
const UNASKED: StreamReason = { code: 'cancelled', text: 'protocols cannot be switched in HTTP/2' };

/** The visitor's connection, as its requests see it. */
export interface RequestingVisitor {
  readonly facts: VisitorFacts;
  readonly owner: VisitorOwner;
  route(head: RequestHead): Tunnel | LocalAnswer;
  /** Nothing more comes of it. `isTakenBack`: the visitor did not wait for the end of the answer. */
  onOver(request: Http2Request, isTakenBack: boolean): void;
}

export class Http2Request implements Asker {
  readonly bodyForm: ChunkedForm = 'data';
  readonly #visitor: RequestingVisitor;
  readonly #stream: ServerHttp2Stream;
  readonly #startedMs: number;
  #head: RequestHead | null = null;
  #call: ServiceCall | null = null;
  #body: Http2Body | null = null;
  #trailers: readonly HeaderField[] = [];
  #hasTrailers = false;
  #isAnswered = false;
  #closesAtEnd = false;
  /** We reset it. */
  #isCut = false;

  constructor(visitor: RequestingVisitor, stream: ServerHttp2Stream) {
    this.#visitor = visitor;
    this.#stream = stream;
    this.#startedMs = visitor.owner.now();
    // What went wrong is told by the close that follows; without a listener it would end the process.
    stream.on('error', () => {});
    stream.on('aborted', () => this.#leave());
    stream.on('close', () => this.#onClosed());
    stream.on('drain', () => this.#call?.resume());
    stream.on('wantTrailers', () => this.#sendTrailers());
  }

  begin(raw: RawFields): void {
    const hasBody = !this.#stream.endAfterHeaders;
    const head = requestHeadOf(raw, hasBody);
    if (head.kind === 'problem') {
      const { status, reason } = head;
      this.#answer({ fault: new Fault(refusalCodeOf(status), { reason }) }, valueIn(raw, 'accept'));
      return;
    }
    this.#head = head;
    const route = this.#visitor.route(head);
    if (isLocalAnswer(route)) this.#answer(route, fieldValueOf(head.headers, 'accept'));
    else this.#ask(route, head);
  }

  #ask(tunnel: Tunnel, head: RequestHead): void {
    const { facts, owner } = this.#visitor;
    const { framing } = head;
    const rewrite = tunnel.http?.hostHeader ?? null;
    const text = requestHeadFor(head, {
      visitorAddress: facts.address,
      proto: facts.scheme,
      hostHeader: rewrite === null ? 'keep' : { rewrite },
    });
    const hasBody = framing.kind === 'chunked' || (framing.kind === 'length' && framing.length > 0);
    const recorder = owner.capture(tunnel, head, this.#startedMs);
    const call = callService(owner, tunnel, { head, text, hasBody, recorder }, this);
    this.#call = call;
    if (hasBody) {
      const shape = { framing, inChunks: requestFormOf(tunnel) === 'chunks' };
      this.#body = new Http2Body(this.#stream, call, shape, (reason) => this.#onBadBody(reason));
    }
    call.start();
    if (this.#body === null) this.#stream.resume();
    // An answer of our own may be out already.
    else if (this.#call === null) this.#body.drop();
    else this.#body.start();
  }

  #onBadBody(reason: string): void {
    this.#call?.abort();
    this.onFailed(new Fault('HTTP_BAD_REQUEST', { reason }));
  }

  // ---- the response, from the service ----

  onInterim(head: ResponseHead): void {
    if (this.#isWritable()) this.#stream.additionalHeaders(responseFieldsOf(head));
  }

  onHead(head: ResponseHead): void {
    if (!this.#isWritable()) return;
    const { framing } = head;
    const endStream = framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0);
    // Also where none will come: without it node marks the end before a reset, and half a body would look whole.
    this.#hasTrailers = !endStream;
    this.#tell(head.status);
    this.#stream.respond(responseFieldsOf(head), { endStream, waitForTrailers: !endStream, ...NO_DATE });
  }

  onBody(bytes: Buffer, start: number, end: number): boolean {
    if (!this.#isWritable()) return true;
    // A copy, also of what is lent: after an abort node may still send it, while its owner has long used it for others.
    return this.#stream.write(Buffer.from(bytes.subarray(start, end)));
  }

  onText(): void {}

  onTrailers(trailers: readonly HeaderField[]): void {
    this.#trailers = trailers;
  }

  onTurn(): void {}

  onDone(requestDone: boolean): void {
    this.#call = null;
    this.#end(requestDone);
  }

  onFailed(fault: Fault): void {
    this.#call = null;
    if (!this.#isAnswered)
      this.#answer({ fault }, this.#head === null ? null : fieldValueOf(this.#head.headers, 'accept'));
    else this.#cut();
  }

  /** Half of an answer is out: only a reset tells the visitor that the rest is missing. */
  #cut(): void {
    this.#isCut = true;
    if (!this.#stream.destroyed) this.#stream.close(NGHTTP2_INTERNAL_ERROR);
  }

  onSwitched(_head: ResponseHead, stream: MuxStream): void {
    stream.reset(UNASKED);
    this.onFailed(new Fault('LOCAL_MALFORMED', { reason: UNASKED.text }));
  }

  onBodyDrain(): void {
    this.#body?.resume();
  }

  // ---- answers of our own ----

  #answer(answer: LocalAnswer, accept: string | null): void {
    if (!this.#isWritable()) return;
    const response = renderAnswer(answer, accept);
    const isWhole = this.#stream.endAfterHeaders;
    this.#tell(response.status);
    this.#stream.respond(ownFieldsOf(response), { endStream: response.body === '', ...NO_DATE });
    if (this.#isWritable()) this.#stream.write(response.body, 'latin1');
    this.#end(isWhole);
  }

  #end(requestDone: boolean): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    if (!requestDone) {
      this.#body?.drop();
      this.#closesAtEnd = true;
      // With trailers the end comes after them.
      if (stream.writableFinished) this.#closeAtEnd();
      else if (!this.#hasTrailers) stream.once('finish', () => this.#closeAtEnd());
    }
    stream.end();
  }

  #sendTrailers(): void {
    if (this.#stream.destroyed || this.#stream.closed) return;
    this.#stream.sendTrailers(trailerFieldsOf(this.#trailers));
    this.#closeAtEnd();
  }

  /** The visitor need not send the rest of its request: RFC 9113, 8.1. */
  #closeAtEnd(): void {
    if (this.#closesAtEnd && !this.#stream.destroyed) this.#stream.close(NGHTTP2_NO_ERROR);
  }

  #tell(status: number): void {
    const { owner } = this.#visitor;
    this.#isAnswered = true;
    const wholeMs = owner.now() - this.#startedMs;
    // While a body is on its way the time is the visitor's.
    const serviceMs = this.#body === null ? (this.#call?.serviceMs ?? null) : null;
    owner.onResponse(status, wholeMs, serviceMs === null ? null : wholeMs - serviceMs);
  }

  /** Also false for HEAD once node has ended the answer by itself, except for the head itself. */
  #isWritable(): boolean {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return false;
    return !stream.headersSent || !stream.writableEnded;
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
    const isTakenBack = this.#call !== null || (this.#stream.aborted && !this.#isCut);
    this.#leave();
    this.#visitor.onOver(this, isTakenBack);
  }
}

/** The service's own Date, or none; node's types know the option only elsewhere. */
const NO_DATE = { sendDate: false } as object;
