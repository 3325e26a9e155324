// Splits one direction of a connection into HTTP messages, from borrowed bytes in pieces of any size.
import {
  BODY_BAD,
  BODY_INCOMPLETE,
  type BodyScanner,
  type BodySink,
  ChunkedBody,
  findHeadEnd,
  HEAD_INCOMPLETE,
  type HeadSearch,
  HTTP1_BOUNDS,
  NOT_PLAIN,
  newHeadSearch,
  resetHeadSearch,
} from '@tunnel/http1';
import { IN_CHUNKS, UNTIL_CLOSE } from './sniffed-head.ts';

export interface MessageHandlers {
  /**
   * Called at the start of a message. Returns the index after the head if the head is plain and complete; otherwise NOT_PLAIN, and `onHead`
   * follows.
   */
  onPlainHead(bytes: Buffer, start: number, end: number): number;
  /** Called with the complete head of a message, one character per byte. */
  onHead(text: string): void;
  /** Called with body content of a message, without chunk framing. The bytes are valid only during the call. */
  onBody(bytes: Buffer, start: number, end: number): void;
  onMessageEnd(): void;
}

type Phase =
  | 'head'
  | 'length'
  | 'chunks'
  | 'until-close'
  /** The message is unreadable or no longer needed: parsing has stopped. */
  | 'stopped';

const NOTHING = Buffer.alloc(0);

export class MessageReader implements BodySink {
  readonly #handlers: MessageHandlers;
  readonly #search: HeadSearch = newHeadSearch();
  #phase: Phase = 'head';
  /** Remaining bytes of a message body with a known length. */
  #remaining = 0;
  #chunks: BodyScanner | null = null;
  #kept: Buffer[] | null = null;
  /** The piece of data being parsed, which `forward` reports parts of. */
  #piece: Buffer = NOTHING;

  constructor(handlers: MessageHandlers) {
    this.#handlers = handlers;
  }

  get isStopped(): boolean {
    return this.#phase === 'stopped';
  }

  push(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end && this.#phase !== 'stopped') {
      at = this.#phase === 'head' ? this.#readHead(bytes, at, end) : this.#readBody(bytes, at, end);
    }
  }

  /** Sets the body of the current message (`SniffedRequestHead.body`). Must be called by the head handler, otherwise the reader stops. */
  expectBody(body: number): void {
    if (body === IN_CHUNKS) {
      this.#chunks = new ChunkedBody('data');
      this.#phase = 'chunks';
    } else if (body === UNTIL_CLOSE) this.#phase = 'until-close';
    else {
      this.#remaining = body;
      this.#phase = 'length';
    }
  }

  /** Ends the direction. Returns true if the end of the connection completes the last message. */
  close(): boolean {
    const isEnd = this.#phase === 'until-close';
    this.stop();
    if (isEnd) this.#handlers.onMessageEnd();
    return isEnd;
  }

  stop(): void {
    this.#phase = 'stopped';
    this.#kept = null;
    this.#chunks = null;
  }

  /** Reports body content found by the parser of chunked bodies. */
  forward(start: number, end: number): void {
    this.#handlers.onBody(this.#piece, start, end);
  }

  text(): void {}

  #readHead(bytes: Buffer, start: number, end: number): number {
    if (this.#search.seenBytes === 0) {
      const plainEnd = this.#handlers.onPlainHead(bytes, start, end);
      if (plainEnd !== NOT_PLAIN) return this.#afterHead(plainEnd);
    }
    const next = findHeadEnd(bytes, start, end, this.#search, HTTP1_BOUNDS);
    if (next === HEAD_INCOMPLETE) {
      this.#kept ??= [];
      this.#kept.push(Buffer.from(bytes.subarray(start, end)));
      return end;
    }
    if (next >= 0) this.#handlers.onHead(this.#takeHead(bytes, start, next));
    return this.#afterHead(next < 0 ? end : next);
  }

  #afterHead(next: number): number {
    // The handler does not want the body, because it did not call expectBody(): parsing stops.
    if (this.#phase === 'head') this.stop();
    else if (this.#phase === 'length' && this.#remaining === 0) this.#endMessage();
    return next;
  }

  #takeHead(bytes: Buffer, start: number, next: number): string {
    const lead = this.#search.leadBytes;
    resetHeadSearch(this.#search);
    if (this.#kept === null) return bytes.toString('latin1', start + lead, next);
    const whole = Buffer.concat([...this.#kept, bytes.subarray(start, next)]);
    this.#kept = null;
    return whole.toString('latin1', lead, whole.length);
  }

  #readBody(bytes: Buffer, start: number, end: number): number {
    if (this.#chunks !== null) return this.#readChunks(this.#chunks, bytes, start, end);
    if (this.#phase === 'until-close') {
      this.#handlers.onBody(bytes, start, end);
      return end;
    }
    const stop = Math.min(end, start + this.#remaining);
    this.#remaining -= stop - start;
    const isLast = this.#remaining === 0;
    this.#handlers.onBody(bytes, start, stop);
    if (isLast) this.#endMessage();
    return stop;
  }

  #readChunks(chunks: BodyScanner, bytes: Buffer, start: number, end: number): number {
    this.#piece = bytes;
    const next = chunks.push(bytes, start, end, this);
    this.#piece = NOTHING;
    if (next === BODY_BAD) this.stop();
    if (next === BODY_BAD || next === BODY_INCOMPLETE) return end;
    this.#endMessage();
    return next;
  }

  #endMessage(): void {
    this.#chunks = null;
    if (!this.isStopped) this.#phase = 'head';
    this.#handlers.onMessageEnd();
  }
}
