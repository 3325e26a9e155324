// The answer to one request of an HTTP/1.1 visitor: the service's, rewritten for this visitor, or one of our own.
import {
  CHUNK_END,
  chunkLine,
  type HeaderField,
  lastChunk,
  type RequestHead,
  type ResponseHead,
  responseHeadFor,
  type VisitorResponse,
} from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Guarded } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { OwnAnswer } from '../../../routing/http-router.ts';
import type { ChunkWriter, ResponseHandler, UnsentRequest } from '../../../upstream/response-handler.ts';
import type { UpstreamStream } from '../../../upstream/upstream.ts';
import { ownAnswerText } from '../own-answer.ts';
import type { ProxiedRequest } from '../proxied-request.ts';
import type { Http1Input } from './http1-input.ts';
import type { Http1Writer } from './http1-writer.ts';

/** The visitor's connection, as its answers see it. */
export interface RespondingVisitor extends Guarded {
  readonly request: Pick<ProxiedRequest, 'answered' | 'answerTo' | 'retryOnNextMember' | 'notes'>;
  /** No further request is taken up: the edge is shutting down, or more came behind this one than is kept. */
  readonly endsAfterAnswer: boolean;
  /** Of what came behind this request a part may have been thrown away. */
  readonly input: Pick<Http1Input, 'hasLostBytes'>;
  /** The request's last byte has come. */
  readonly requestDone: boolean;
  /** A service has answered on this connection. */
  onServed(): void;
  /** The last byte of the answer is written. */
  onResponded(keepAlive: boolean): void;
  /** Half of an answer is out: only a cut tells the visitor that the rest is missing. */
  onCutOff(): void;
  onUpgraded(stream: UpstreamStream): void;
  onRequestDrain(): void;
}

const TOO_EARLY: StreamReason = { code: 'cancelled', text: 'too much came before the protocol was switched' };

/** How the body of the service's answer goes out: as data, in chunks of ours, or in those that the service made. */
type BodyForm = 'data' | 'chunks' | 'passed-chunks';

export class Http1Response implements ResponseHandler {
  readonly #visitor: RespondingVisitor;
  readonly #out: Http1Writer;
  /** null: there was no head that could be read. */
  readonly #head: RequestHead | null;
  #keepAlive: boolean;
  #bodyForm: BodyForm = 'data';
  #trailers: readonly HeaderField[] = [];
  #isBegun = false;
  /** Of the service's head; null: none, or it is out. Until then it can be taken back. */
  #waitingStatus: number | null = null;

  constructor(visitor: RespondingVisitor, out: Http1Writer, head: RequestHead | null) {
    this.#visitor = visitor;
    this.#out = out;
    this.#head = head;
    this.#keepAlive = head?.keepAlive ?? false;
  }

  /** Something of it has left, and cannot be taken back. */
  get isOut(): boolean {
    return this.#isBegun && this.#waitingStatus === null;
  }

  // ---- the service's ----

  onInterim(head: ResponseHead): boolean {
    this.#out.message(this.#rewritten(head).text);
    return this.#out.flush();
  }

  onHead(head: ResponseHead): void {
    this.#visitor.onServed();
    this.#decideKeepAlive();
    const { text, framing, keepAlive } = this.#rewritten(head);
    this.#bodyForm = framing.kind === 'chunked' ? 'chunks' : 'data';
    this.#keepAlive = keepAlive;
    this.#isBegun = true;
    this.#waitingStatus = head.status;
    this.#out.message(text);
  }

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.#goOut();
    if (this.#bodyForm !== 'chunks') return this.#out.bytes(bytes, start, end, borrowed);
    this.#out.text(chunkLine(end - start));
    const goesOn = this.#out.bytes(bytes, start, end, borrowed);
    this.#out.text(CHUNK_END);
    return goesOn;
  }

  /** A visitor of HTTP/1.0 gets the data. */
  passChunks(): ChunkWriter | null {
    if (this.#bodyForm !== 'chunks') return null;
    this.#bodyForm = 'passed-chunks';
    return this.#out;
  }

  onTrailers(trailers: readonly HeaderField[]): void {
    this.#trailers = trailers;
  }

  onTurn(): boolean {
    this.#goOut();
    return this.#out.flush();
  }

  onEnd(requestDone: boolean): void {
    if (this.#bodyForm === 'chunks')
      this.#out.message(lastChunk(this.#trailers.map(({ name, value }) => [name, value])));
    this.onTurn();
    this.#visitor.onResponded(this.#keepAlive && requestDone);
  }

  onError(fault: Fault, unsent: UnsentRequest | null): void {
    const { request } = this.#visitor;
    if (this.#waitingStatus !== null) this.#takeBack(request.answerTo(fault));
    else if (this.#isBegun) this.#visitor.onCutOff();
    else if (unsent === null || !request.retryOnNextMember(unsent)) this.answer(request.answerTo(fault));
  }

  onUpgrade(head: ResponseHead, stream: UpstreamStream, bytes: Buffer, start: number, end: number): void {
    if (this.#visitor.input.hasLostBytes) {
      stream.reset(TOO_EARLY);
      return this.answer(this.#visitor.request.answerTo(new Fault('HTTP_BAD_REQUEST', { reason: TOO_EARLY.text })));
    }
    this.#begin(head.status, this.#rewritten(head).text);
    if (end > start) this.#out.bytes(bytes, start, end, false);
    else this.#out.flush();
    this.#visitor.onUpgraded(stream);
  }

  onRequestDrain(): void {
    this.#visitor.onRequestDrain();
  }

  abandon(error: unknown, where: string): void {
    this.#visitor.abandon(error, where);
  }

  // ---- our own ----

  answer(answer: OwnAnswer): void {
    this.#decideKeepAlive();
    const { request } = this.#visitor;
    const asked = { head: this.#head, keepAlive: this.#keepAlive, notes: request.notes };
    const { status, text } = ownAnswerText(answer, asked);
    this.#begin(status, text);
    this.#out.flush();
    this.#visitor.onResponded(this.#keepAlive);
  }

  /** Until the request is complete nobody knows whether another one can follow: then none does. */
  #decideKeepAlive(): void {
    if (!this.#visitor.requestDone || this.#visitor.endsAfterAnswer) this.#keepAlive = false;
  }

  #goOut(): void {
    if (this.#waitingStatus === null) return;
    this.#visitor.request.answered(this.#waitingStatus);
    this.#waitingStatus = null;
  }

  /** What came right behind the head was malformed: nothing has left yet. */
  #takeBack(answer: OwnAnswer): void {
    this.#waitingStatus = null;
    this.#out.drop();
    this.answer(answer);
  }

  #begin(status: number, text: string): void {
    this.#isBegun = true;
    this.#out.message(text);
    this.#visitor.request.answered(status);
  }

  /** As rules want it, then as this visitor can read it. */
  #rewritten(given: ResponseHead): VisitorResponse {
    const { notes } = this.#visitor.request;
    const head = notes === null ? given : notes.notedHead(given);
    return responseHeadFor(head, { visitorVersion: this.#head?.version ?? '1.1', keepAlive: this.#keepAlive });
  }
}
