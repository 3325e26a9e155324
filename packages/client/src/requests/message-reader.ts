// Follows one direction of a connection from message to message, in bytes that belong to somebody else and come in any pieces.
import {
  BODY_BAD,
  BODY_INCOMPLETE,
  type BodyScanner,
  type BodySink,
  type Framing,
  findHeadEnd,
  HEAD_INCOMPLETE,
  type HeadSearch,
  HTTP1_BOUNDS,
  newHeadSearch,
  resetHeadSearch,
  scannerOf,
} from '@tunnel/core';

export interface MessageHandlers {
  /** A whole head, one character a byte. Returns how its body ends; null when it cannot be followed any further. */
  onHead(text: string): Framing | null;
  /** Content, without the framing of chunks. Valid during the call only. */
  onBody(bytes: Buffer, start: number, end: number): void;
  onMessageEnd(): void;
}

type Phase =
  | { readonly kind: 'head' }
  | { readonly kind: 'body'; readonly scanner: BodyScanner; readonly untilClose: boolean }
  /** Unreadable, or of no interest: nothing is looked at any more. */
  | { readonly kind: 'stopped' };

const HEAD: Phase = { kind: 'head' };
const STOPPED: Phase = { kind: 'stopped' };
const NOTHING = Buffer.alloc(0);

export class MessageReader implements BodySink {
  readonly #handlers: MessageHandlers;
  readonly #search: HeadSearch = newHeadSearch();
  #phase: Phase = HEAD;
  #kept: Buffer[] = [];
  /** What is being pushed, for `forward`. */
  #piece: Buffer = NOTHING;

  constructor(handlers: MessageHandlers) {
    this.#handlers = handlers;
  }

  get isStopped(): boolean {
    return this.#phase.kind === 'stopped';
  }

  push(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end && this.#phase.kind !== 'stopped') {
      at = this.#phase.kind === 'head' ? this.#readHead(bytes, at, end) : this.#readBody(bytes, at, end);
    }
  }

  /** The direction has ended. Returns whether that is how its last message ends. */
  close(): boolean {
    const isEnd = this.#phase.kind === 'body' && this.#phase.untilClose;
    this.stop();
    if (isEnd) this.#handlers.onMessageEnd();
    return isEnd;
  }

  stop(): void {
    this.#phase = STOPPED;
    this.#kept = [];
  }

  /** BodySink: these bytes are content. */
  forward(start: number, end: number): void {
    this.#handlers.onBody(this.#piece, start, end);
  }

  text(): void {}

  #readHead(bytes: Buffer, start: number, end: number): number {
    const next = findHeadEnd(bytes, start, end, this.#search, HTTP1_BOUNDS);
    if (next === HEAD_INCOMPLETE) {
      this.#kept.push(Buffer.from(bytes.subarray(start, end)));
      return end;
    }
    const framing = next < 0 ? null : this.#handlers.onHead(this.#takeHead(bytes, start, next));
    // The handler may have had enough of this direction.
    if (this.isStopped) return end;
    if (framing === null) this.stop();
    else this.#beginBody(framing);
    return next < 0 ? end : next;
  }

  #takeHead(bytes: Buffer, start: number, next: number): string {
    const lead = this.#search.leadBytes;
    resetHeadSearch(this.#search);
    if (this.#kept.length === 0) return bytes.toString('latin1', start + lead, next);
    const whole = Buffer.concat([...this.#kept, bytes.subarray(start, next)]);
    this.#kept = [];
    return whole.toString('latin1', lead);
  }

  #beginBody(framing: Framing): void {
    const scanner = scannerOf(framing, 'data');
    if (scanner === null) this.#endMessage();
    else this.#phase = { kind: 'body', scanner, untilClose: framing.kind === 'until-close' };
  }

  #readBody(bytes: Buffer, start: number, end: number): number {
    if (this.#phase.kind !== 'body') return end;
    this.#piece = bytes;
    const next = this.#phase.scanner.push(bytes, start, end, this);
    this.#piece = NOTHING;
    if (next === BODY_BAD) this.stop();
    if (next === BODY_BAD || next === BODY_INCOMPLETE) return end;
    this.#endMessage();
    return next;
  }

  #endMessage(): void {
    if (!this.isStopped) this.#phase = HEAD;
    this.#handlers.onMessageEnd();
  }
}
