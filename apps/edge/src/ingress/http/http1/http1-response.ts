// Response to a request of an HTTP/1.1 visitor, from the service or from the edge, and the writer for its bytes.

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

/**
 * Maximum bytes produced by the edge (responses, heads, trailers) queued for a visitor that does not read, beyond the kernel's buffers.
 * Data from a service is limited by the credit of its stream.
 */
export const HTTP_QUEUE_MAX_BYTES = 256 * 1024;

const TOO_EARLY: StreamReason = { code: 'cancelled', text: 'too many bytes before the protocol switch' };

/** Encoding of the response body: raw data, chunks made by the edge, or the service's chunks unchanged. */
type BodyForm = 'data' | 'chunks' | 'passed-chunks';

export class Http1Response implements ResponseHandler {
  readonly #visitor: Http1Visitor;
  readonly #out: Http1Writer;
  /** Head of the request that is answered. Null if it could not be read. */
  readonly #head: RequestHead | null;
  #keepAlive: boolean;
  #bodyForm: BodyForm = 'data';
  #trailers: readonly HeaderField[] = [];
  #isBegun = false;
  /** Status of a service response with a head that is not sent yet and can still be withdrawn. Otherwise null. */
  #waitingStatus: number | null = null;

  constructor(visitor: Http1Visitor, out: Http1Writer, head: RequestHead | null) {
    this.#visitor = visitor;
    this.#out = out;
    this.#head = head;
    this.#keepAlive = head?.keepAlive ?? false;
  }

  /** Whether any part of the response was sent and can no longer be withdrawn. */
  get isOut(): boolean {
    return this.#isBegun && this.#waitingStatus === null;
  }

  // ---- response from the service ----

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
    this.#commitHead();
    if (this.#bodyForm !== 'chunks') return this.#out.bytes(bytes, start, end, borrowed);
    this.#out.text(chunkLine(end - start));
    const goesOn = this.#out.bytes(bytes, start, end, borrowed);
    this.#out.text(CHUNK_END);
    return goesOn;
  }

  /** Passes the service's chunks through unchanged. Visitors with HTTP/1.0 get raw data instead. */
  passChunks(): ChunkWriter | null {
    if (this.#bodyForm !== 'chunks') return null;
    this.#bodyForm = 'passed-chunks';
    return this.#out;
  }

  onTrailers(trailers: readonly HeaderField[]): void {
    this.#trailers = trailers;
  }

  onTurn(): boolean {
    this.#commitHead();
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
    else if (this.#isBegun) {
      request.brokenOff(fault);
      this.#visitor.onCutOff();
    } else if (unsent === null || !request.retryOnNextMember(unsent)) this.answer(request.answerTo(fault));
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

  // ---- response from the edge ----

  answer(answer: EdgeReply): void {
    this.#decideKeepAlive();
    const { request } = this.#visitor;
    const asked = { head: this.#head, keepAlive: this.#keepAlive, edits: request.edits };
    const { status, text } = edgeReplyText(answer, asked);
    this.#begin(status, text);
    this.#out.flush();
    this.#visitor.onResponded(this.#keepAlive);
  }

  /** Disables keep-alive while the request is incomplete, because the start of the next request is unknown. */
  #decideKeepAlive(): void {
    if (!this.#visitor.requestDone || this.#visitor.endsAfterAnswer) this.#keepAlive = false;
  }

  #commitHead(): void {
    if (this.#waitingStatus === null) return;
    this.#visitor.request.answered(this.#waitingStatus);
    this.#waitingStatus = null;
  }

  /** Replaces the service's response by an error response: the bytes behind the head were malformed, and nothing was sent yet. */
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

  /** Applies policy changes to the response head, then adapts the head to the visitor's HTTP version. */
  #rewritten(given: ResponseHead): VisitorResponse {
    const { edits } = this.#visitor.request;
    const head = edits === null ? given : edits.applyToHead(given);
    return responseHeadFor(head, { visitorVersion: this.#head?.version ?? '1.1', keepAlive: this.#keepAlive });
  }
}

/** Up to this size, copying data behind the head is cheaper than a separate write. */
const JOINED_MAX_BYTES = 16 * 1024;

/**
 * Writes to an HTTP/1.1 visitor. When a write returns false, the source must stop. A head waits for the first bytes of its body, so that a
 * small response is a single write.
 */
export class Http1Writer implements ChunkWriter {
  readonly #end: ByteDuplex;
  readonly #onOverrun: () => void;
  #pending = '';
  /** Part of the text in `pending` that was made by the edge, so that no stream credit limits it. */
  #pendingOwnBytes = 0;
  #isFree = true;
  /** Bytes made by the edge that are queued for the visitor since the last drain. */
  #queuedOwnBytes = 0;

  /**
   * `onOverrun` is called if a source keeps writing although it was stopped. Such an internal error closes only the affected connection.
   */
  constructor(end: ByteDuplex, onOverrun: () => void) {
    this.#end = end;
    this.#onOverrun = onOverrun;
  }

  /** True if the visitor has accepted all written bytes. */
  get isFree(): boolean {
    return this.#isFree;
  }

  onDrain(): void {
    this.#isFree = true;
    this.#queuedOwnBytes = 0;
  }

  /** Queues Latin-1 text made by the edge: a head, a response, trailers. Only back-pressure limits the amount. */
  message(text: string): void {
    this.#pending += text;
    this.#pendingOwnBytes += text.length;
  }

  /** Sends 100 Continue to the visitor, who asked whether to send the request body. */
  writeContinue(): void {
    this.message('HTTP/1.1 100 Continue\r\n\r\n');
    this.flush();
  }

  /** Queues Latin-1 text around service data, such as a chunk line. Limited by the stream's credit, like the data. */
  text(piece: string): void {
    this.#pending += piece;
  }

  /** Writes response data of the service to the visitor. Follows the rules of ByteDuplex.write. */
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
    // The joined buffer has no other owner and may be kept. The memory of `bytes` is free again.
    return this.#writePending(joined);
  }

  /** Discards queued text of the response that was not written yet. */
  drop(): void {
    this.#pending = '';
    this.#pendingOwnBytes = 0;
  }

  /** Writes the queued text of the response. Follows the rules of ByteDuplex.write. */
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
