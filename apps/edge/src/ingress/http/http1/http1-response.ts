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
import type { Fault } from '@tunnel/errors';
import type { ByteDuplex, Guarded, MuxStream } from '@tunnel/mux';
import type { OwnAnswer } from '../../../routing/http-router.ts';
import type { ChunkWriter, ResponseHandler, UnsentRequest } from '../../../upstream/response-handler.ts';
import { ownAnswerText } from '../own-answer.ts';
import type { ProxiedRequest } from '../proxied-request.ts';

/** The visitor's connection, as its answers see it. */
export interface RespondingVisitor extends Guarded {
  readonly request: Pick<ProxiedRequest, 'answered' | 'retryOnNextMember'>;
  /** No further request is read: the edge is shutting down. */
  readonly isDraining: boolean;
  /** The request's last byte has come. */
  readonly requestDone: boolean;
  /** A service has answered on this connection. */
  onServed(): void;
  /** The last byte of the answer is written. */
  onResponded(keepAlive: boolean): void;
  /** Half of an answer is out: only a cut tells the visitor that the rest is missing. */
  onCutOff(): void;
  onUpgraded(stream: MuxStream): void;
  onRequestDrain(): void;
}

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

  onInterim(head: ResponseHead): void {
    this.#out.text(this.#rewritten(head).text);
    this.#out.flush();
  }

  onHead(head: ResponseHead): void {
    this.#visitor.onServed();
    this.#decideKeepAlive();
    const { text, framing, keepAlive } = this.#rewritten(head);
    this.#bodyForm = framing.kind === 'chunked' ? 'chunks' : 'data';
    this.#keepAlive = keepAlive;
    this.#isBegun = true;
    this.#waitingStatus = head.status;
    this.#out.text(text);
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

  onTurn(): void {
    this.#goOut();
    this.#out.flush();
  }

  onEnd(requestDone: boolean): void {
    if (this.#bodyForm === 'chunks') this.#out.text(lastChunk(this.#trailers.map(({ name, value }) => [name, value])));
    this.onTurn();
    this.#visitor.onResponded(this.#keepAlive && requestDone);
  }

  onError(fault: Fault, unsent: UnsentRequest | null): void {
    if (this.#waitingStatus !== null) this.#takeBack({ fault });
    else if (this.#isBegun) this.#visitor.onCutOff();
    else if (unsent === null || !this.#visitor.request.retryOnNextMember(unsent)) this.answer({ fault });
  }

  onUpgrade(head: ResponseHead, stream: MuxStream, bytes: Buffer, start: number, end: number): void {
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
    const { status, text } = ownAnswerText(answer, { head: this.#head, keepAlive: this.#keepAlive });
    this.#begin(status, text);
    this.#out.flush();
    this.#visitor.onResponded(this.#keepAlive);
  }

  /** Until the request is complete nobody knows whether another one can follow: then none does. */
  #decideKeepAlive(): void {
    if (!this.#visitor.requestDone || this.#visitor.isDraining) this.#keepAlive = false;
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
    this.#out.text(text);
    this.#visitor.request.answered(status);
  }

  #rewritten(head: ResponseHead): VisitorResponse {
    return responseHeadFor(head, { visitorVersion: this.#head?.version ?? '1.1', keepAlive: this.#keepAlive });
  }
}

/** Up to here a copy behind the head is cheaper than a write of its own. */
const JOINED_MAX_BYTES = 16 * 1024;

/** What goes out to one visitor: the head waits for the first bytes of its body, so that a small answer is one write. */
export class Http1Writer {
  readonly #end: ByteDuplex;
  #head = '';

  constructor(end: ByteDuplex) {
    this.#end = end;
  }

  /** Latin1 text: a head, a chunk line, trailers. */
  text(text: string): void {
    this.#head += text;
  }

  /** Same rule as ByteDuplex.write. */
  bytes(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#head === '') return this.#end.write(bytes, start, end, borrowed);
    const length = end - start;
    if (length > JOINED_MAX_BYTES) {
      this.flush();
      return this.#end.write(bytes, start, end, borrowed);
    }
    const head = this.#head;
    this.#head = '';
    const joined = Buffer.allocUnsafe(head.length + length);
    joined.write(head, 0, 'latin1');
    joined.set(bytes.subarray(start, end), head.length);
    // Ours alone, so it may be kept; the memory of `bytes` is free in any case.
    return this.#end.write(joined, 0, joined.length, true);
  }

  /** Of what has not left. */
  drop(): void {
    this.#head = '';
  }

  flush(): void {
    const head = this.#head;
    if (head === '') return;
    this.#head = '';
    const bytes = Buffer.from(head, 'latin1');
    this.#end.write(bytes, 0, bytes.length, true);
  }
}
