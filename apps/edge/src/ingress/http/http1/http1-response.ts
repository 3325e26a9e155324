// The answer to one request of an HTTP/1.1 visitor: the service's, rewritten for this visitor, or one of our own; and the way out for its bytes.

import { Fault } from '@tunnel/errors';
import {
  CHUNK_END,
  chunkLine,
  type HeaderField,
  lastChunk,
  type RequestHead,
  type ResponseHead,
  responseHeadFor,
  type VisitorResponse,
} from '@tunnel/http1';
import type { ByteDuplex } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { EdgeReply } from '../../../routing/http-router.ts';
import type { ChunkWriter, ResponseHandler, UnsentRequest } from '../../../upstream/response-handler.ts';
import type { UpstreamStream } from '../../../upstream/upstream.ts';
import { edgeReplyText } from '../render-answer.ts';
import type { Http1Visitor } from './http1-visitor.ts';

/** of our own for one visitor that does not read (answers, heads, trailers), beyond what the kernel holds; a service’s data is bounded by the credit of its stream */
export const HTTP_QUEUE_MAX_BYTES = 256 * 1024;

const TOO_EARLY: StreamReason = { code: 'cancelled', text: 'too many bytes before the protocol switch' };

/** How the body of the service's answer goes out: as data, in chunks of ours, or in those that the service made. */
type BodyForm = 'data' | 'chunks' | 'passed-chunks';

export class Http1Response implements ResponseHandler {
  readonly #visitor: Http1Visitor;
  readonly #out: Http1Writer;
  /** null: there was no head that could be read. */
  readonly #head: RequestHead | null;
  #keepAlive: boolean;
  #bodyForm: BodyForm = 'data';
  #trailers: readonly HeaderField[] = [];
  #isBegun = false;
  /** Of the service's head; null: none, or it is out. Until then it can be taken back. */
  #waitingStatus: number | null = null;

  constructor(visitor: Http1Visitor, out: Http1Writer, head: RequestHead | null) {
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

  answer(answer: EdgeReply): void {
    this.#decideKeepAlive();
    const { request } = this.#visitor;
    const asked = { head: this.#head, keepAlive: this.#keepAlive, edits: request.edits };
    const { status, text } = edgeReplyText(answer, asked);
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
  #takeBack(answer: EdgeReply): void {
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
    const { edits } = this.#visitor.request;
    const head = edits === null ? given : edits.applyToHead(given);
    return responseHeadFor(head, { visitorVersion: this.#head?.version ?? '1.1', keepAlive: this.#keepAlive });
  }
}

/** Up to here a copy behind the head is cheaper than a write of its own. */
const JOINED_MAX_BYTES = 16 * 1024;

/**
 * Writes to one HTTP/1.1 visitor, by one rule: a write that says false stops its source, whatever that is. The head waits for the first bytes of its
 * body, so that a small answer is one write.
 */
export class Http1Writer implements ChunkWriter {
  readonly #end: ByteDuplex;
  readonly #onOverrun: () => void;
  #pending = '';
  /** The part of `pending` that no credit bounds. */
  #pendingOwnBytes = 0;
  #isFree = true;
  /** Of our own, since the visitor last took all. */
  #queuedOwnBytes = 0;

  /** `onOverrun`: a source went on although it was stopped. It is a mistake of ours; the connection pays for it, and nobody else. */
  constructor(end: ByteDuplex, onOverrun: () => void) {
    this.#end = end;
    this.#onOverrun = onOverrun;
  }

  /** The visitor has taken all that was written. */
  get isFree(): boolean {
    return this.#isFree;
  }

  onDrain(): void {
    this.#isFree = true;
    this.#queuedOwnBytes = 0;
  }

  /** Latin1, of our own: a head, an answer, trailers. Nothing bounds it but that its source stops. */
  message(text: string): void {
    this.#pending += text;
    this.#pendingOwnBytes += text.length;
  }

  /** The visitor has asked whether to send its body. */
  sayContinue(): void {
    this.message('HTTP/1.1 100 Continue\r\n\r\n');
    this.flush();
  }

  /** Latin1, around a service's data and bounded as that is: a chunk line. */
  text(piece: string): void {
    this.#pending += piece;
  }

  /** A service's data. Same rule as ByteDuplex.write. */
  bytes(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#pending === '') return (this.#isFree = this.#end.write(bytes, start, end, borrowed));
    const length = end - start;
    if (length > JOINED_MAX_BYTES) {
      this.flush();
      return (this.#isFree = this.#end.write(bytes, start, end, borrowed));
    }
    const head = this.#pending;
    const joined = Buffer.allocUnsafe(head.length + length);
    joined.write(head, 0, 'latin1');
    bytes.copy(joined, head.length, start, end);
    // Ours alone, so it may be kept; the memory of `bytes` is free in any case.
    return this.#writePending(joined);
  }

  /** Of what has not left. */
  drop(): void {
    this.#pending = '';
    this.#pendingOwnBytes = 0;
  }

  /** Same rule as ByteDuplex.write. */
  flush(): boolean {
    return this.#pending === '' ? this.#isFree : this.#writePending(Buffer.from(this.#pending, 'latin1'));
  }

  #writePending(bytes: Buffer): boolean {
    const ownBytes = this.#pendingOwnBytes;
    this.drop();
    this.#isFree = this.#end.write(bytes, 0, bytes.length, true);
    if (this.#isFree || ownBytes === 0) return this.#isFree;
    this.#queuedOwnBytes += ownBytes;
    if (this.#queuedOwnBytes > HTTP_QUEUE_MAX_BYTES) this.#onOverrun();
    return false;
  }
}
