// What an HTTP/1.1 visitor sends. It is read all the time, for a visitor that is not read cannot be heard leaving: what comes before its turn is
// kept within a bound, what is no longer wanted is thrown away, and only a body that its service does not take stops it.
import { type ByteDuplex, ByteQueue } from '@tunnel/mux';
import type { VisitorDuplex } from '../visitor.ts';
import type { Http1Visitor } from './http1-visitor.ts';

/** bytes behind a request that is not answered yet: a few pipelined requests, or early ones behind an upgrade; with more the connection ends behind the answer */
const HTTP_EARLY_BYTES = 64 * 1024;

export class Http1Input {
  readonly #end: VisitorDuplex;
  readonly #visitor: Http1Visitor;
  /** What came behind the request that is being answered. */
  #early: EarlyBytes | null = null;
  #isTakingEarly = false;
  #isDiscarding = false;
  #isPaused = false;
  #goOn = true;
  #readBytes = 0;

  constructor(end: VisitorDuplex, visitor: Http1Visitor) {
    this.#end = end;
    this.#visitor = visitor;
  }

  /** The visitor is not read. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** What it has sent since it came. */
  get readBytes(): number {
    return this.#readBytes;
  }

  get waitingBytes(): number {
    return this.#early?.length ?? 0;
  }

  /** More came behind the present request than is kept. */
  get hasLostBytes(): boolean {
    return this.#early?.isLost ?? false;
  }

  /** Same rule as ByteReader.onData. */
  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.#readBytes += end - start;
    this.#goOn = true;
    const at = this.#visitor.take(bytes, start, end, borrowed);
    if (at < end) this.#keep(bytes, at, end);
    // After our last word nothing is held back, whatever a service may have left lying.
    if (!this.#goOn && this.#isDiscarding) this.#end.leaveMemory();
    else if (!this.#goOn) this.#isPaused = true;
    return !this.#isPaused;
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    if (this.#isDiscarding) return;
    this.#early ??= new EarlyBytes();
    if (this.#visitor.isBodyWaiting) this.#goOn = this.#early.push(bytes, start, end);
    else this.#early.pushOrLose(bytes, start, end);
  }

  /** From within take(): no more until resume(). */
  holdBack(): void {
    this.#goOn = false;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // The service was left in the midst of a body, and a carrier may still send of it.
    if (this.#isDiscarding) this.#end.leaveMemory();
    this.#end.resume();
  }

  /** The turn of what waits has come. */
  takeEarly(): void {
    const early = this.#early;
    // What is being taken goes on by itself.
    if (early === null || early.isLost || this.#isTakingEarly) return;
    this.#isTakingEarly = true;
    this.#goOn = true;
    let isStopped = false;
    while (!isStopped && early.length > 0 && this.#early === early) {
      const piece = early.shift();
      const at = this.#visitor.take(piece, 0, piece.length, false);
      isStopped = at < piece.length;
      if (isStopped) early.putBack(piece.subarray(at));
    }
    this.#isTakingEarly = false;
    if (early.length === 0 && this.#early === early) this.#early = null;
    if (this.#goOn) this.resume();
  }

  /** What waits goes there; who reads the visitor from here on is the caller's business. */
  handOver(to: ByteDuplex): void {
    const early = this.#early;
    this.discard();
    while (early !== null && early.length > 0) {
      const piece = early.shift();
      to.write(piece, 0, piece.length, false);
    }
  }

  /** What waits, in one piece, behind this; the rest is for whoever reads the visitor from here on. */
  takeAll(first: Buffer): Buffer {
    const pieces = [first];
    for (const early = this.#early; early !== null && early.length > 0; ) pieces.push(early.shift());
    this.discard();
    return pieces.length === 1 ? first : Buffer.concat(pieces);
  }

  /** Nothing of it is wanted any more, now or later. */
  discard(): void {
    this.#isDiscarding = true;
    this.#early = null;
  }
}

/**
 * Bytes that a visitor has sent behind a request that is not answered yet: pipelined requests, the first of a body, or bytes behind an upgrade.
 * The visitor is read on meanwhile, because a visitor that is not read cannot be heard leaving, so this is where the bound is.
 */
class EarlyBytes {
  /** What was taken out and did not find its turn; ours alone, so it goes back without a copy. */
  #front: Buffer | null = null;
  readonly #queue = new ByteQueue();
  #isLost = false;

  get length(): number {
    return (this.#front?.length ?? 0) + this.#queue.length;
  }

  /** There was more than is kept: what is behind this request will never be answered. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** All of it. false: it is time to stop, and to wait for resume(). */
  push(bytes: Buffer, start: number, end: number): boolean {
    this.#queue.push(bytes, start, end);
    return this.length < HTTP_EARLY_BYTES;
  }

  /** As long as there is room. */
  pushOrLose(bytes: Buffer, start: number, end: number): void {
    if (this.length + (end - start) > HTTP_EARLY_BYTES) {
      this.#isLost = true;
      this.#front = null;
      this.#queue.clear();
    }
    if (!this.#isLost) this.#queue.push(bytes, start, end);
  }

  /** The next piece; the taker owns it. */
  shift(): Buffer {
    const front = this.#front;
    this.#front = null;
    return front ?? this.#queue.shift(this.#queue.length);
  }

  putBack(piece: Buffer): void {
    this.#front = piece;
  }
}
