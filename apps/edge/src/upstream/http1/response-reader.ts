// Reads an HTTP/1.1 response from the first byte to the last, and passes it to the handler and the recorder.
import {
  BODY_BAD,
  BODY_INCOMPLETE,
  type BodyScanner,
  type BodySink,
  ChunkedBody,
  createBodyScanner,
  parseResponseHead,
  type ResponseHead,
} from '@tunnel/http1';
import type { ChunkWriter, ResponseHandler } from '../response-handler.ts';
import { InterimHeads, type ServiceRequest } from '../upstream-request.ts';
import { HeadReader, RESPONSE_BOUNDS } from './head-reader.ts';

export type ResponsePhase =
  | 'head'
  | 'body'
  | 'complete'
  /** The protocol was switched by status 101; the following bytes are not HTTP. */
  | 'switched'
  /** The service's response is malformed; `problem` holds the reason. */
  | 'malformed';

const NOTHING: Buffer = Buffer.alloc(0);

/** Reads a response. Extends HeadReader, so that no second object is allocated per response (measurable at high request rates). */
export class ResponseReader extends HeadReader implements BodySink {
  phase: ResponsePhase = 'head';
  /** Head of the service's final response. Null until it has arrived. */
  head: ResponseHead | null = null;
  problem = '';
  /** True if the response's handler currently accepts more bytes. */
  goesOn = true;
  readonly #request: ServiceRequest;
  readonly #handler: ResponseHandler;
  #body: BodyScanner | null = null;
  #interim: InterimHeads | null = null;
  /** Writer of a handler that accepts chunks of the response unchanged, or null. */
  #chunks: ChunkWriter | null = null;
  /** Bytes of the response that the body's scanner is processing. */
  #piece: Buffer = NOTHING;
  #borrowed = false;

  constructor(request: ServiceRequest, handler: ResponseHandler) {
    super(RESPONSE_BOUNDS);
    this.#request = request;
    this.#handler = handler;
  }

  /** True if the response body ends with the connection. */
  get isUntilClose(): boolean {
    return this.phase === 'body' && this.head?.framing.kind === 'until-close';
  }

  /** Processes the next part of bytes[start, end). Returns the position at which it ended. */
  take(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    return this.phase === 'head' ? this.#takeHead(bytes, start, end) : this.#takeBody(bytes, start, end, borrowed);
  }

  #takeHead(bytes: Buffer, start: number, end: number): number {
    const reading = this.read(bytes, start, end);
    if (reading.kind === 'more') return end;
    if (reading.kind === 'problem') return this.#malformed(reading.reason, end);
    const head = parseResponseHead(reading.text, this.#request.head);
    if (head.kind === 'problem') return this.#malformed(head.reason, end);
    if (head.interim) return this.#takeInterim(head, reading.text.length, reading.next, end);
    this.head = head;
    if (head.status === 101) {
      this.phase = 'switched';
      return reading.next;
    }
    this.#handler.onHead(head, false);
    this.#chunks = head.framing.kind === 'chunked' ? this.#handler.passChunks() : null;
    const bodyForm = this.#chunks === null ? 'data' : 'chunks';
    this.#request.recorder?.onResponseHead(head, bodyForm);
    this.#body = createBodyScanner(head.framing, bodyForm);
    this.phase = this.#body === null ? 'complete' : 'body';
    return reading.next;
  }

  #takeInterim(head: ResponseHead, length: number, next: number, end: number): number {
    this.#interim ??= new InterimHeads();
    const problem = this.#interim.take(length);
    if (problem !== null) return this.#malformed(problem, end);
    if (!this.#handler.onInterim(head)) this.goesOn = false;
    return next;
  }

  #takeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    const body = this.#body as BodyScanner;
    this.#piece = bytes;
    this.#borrowed = borrowed;
    const next = body.push(bytes, start, end, this);
    this.#piece = NOTHING;
    if (next === BODY_INCOMPLETE) return end;
    if (next === BODY_BAD) return this.#malformed(body.problem ?? '', end);
    this.phase = 'complete';
    if (this.#chunks === null && body instanceof ChunkedBody && body.trailers.length > 0)
      this.#handler.onTrailers(body.trailers);
    return next;
  }

  #malformed(reason: string, end: number): number {
    this.phase = 'malformed';
    this.problem = reason;
    return end;
  }

  // ---- calls from the body's scanner ----

  forward(start: number, end: number): void {
    this.#request.recorder?.onResponseBody(this.#piece, start, end);
    if (!this.#handler.onData(this.#piece, start, end, this.#borrowed)) this.goesOn = false;
  }

  text(piece: string): void {
    this.#chunks?.text(piece);
  }
}
