// Input of an HTTP/1.1 visitor. The socket is always read, because a disconnect is not noticed on a socket that is not read. Early bytes
// are kept within a limit, unwanted bytes are discarded, and reading pauses only for a body that its service does not accept.
import { type ByteDuplex, ByteQueue } from '@tunnel/mux';
import type { VisitorDuplex } from '../visitor.ts';
import type { Http1Visitor } from './http1-visitor.ts';

/**
 * Maximum bytes kept behind an unanswered request: a few pipelined requests, or bytes sent early for an upgraded protocol. With more bytes
 * the connection closes after the response.
 */
const HTTP_EARLY_BYTES = 64 * 1024;

export class Http1Input {
  readonly #end: VisitorDuplex;
  readonly #visitor: Http1Visitor;
  /** Bytes that the visitor sent after the current request (pipelining). */
  #pipelined: PipelinedBytes | null = null;
  #isTakingEarly = false;
  #isDiscarding = false;
  #isPaused = false;
  #goOn = true;
  #readBytes = 0;

  constructor(end: VisitorDuplex, visitor: Http1Visitor) {
    this.#end = end;
    this.#visitor = visitor;
  }

  /** Whether reading from the visitor is paused. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Total bytes received from the visitor. */
  get readBytes(): number {
    return this.#readBytes;
  }

  get waitingBytes(): number {
    return this.#pipelined?.length ?? 0;
  }

  /** True if more bytes arrived after the current request than are kept. */
  get hasLostBytes(): boolean {
    return this.#pipelined?.isLost ?? false;
  }

  /** Processes or keeps bytes received from the visitor. Follows the rules of ByteReader.onData. */
  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.#readBytes += end - start;
    this.#goOn = true;
    const at = this.#visitor.take(bytes, start, end, borrowed);
    if (at < end) this.#keep(bytes, at, end);
    // After the final response, reading is never paused, even if a service has left body bytes unread.
    if (!this.#goOn && this.#isDiscarding) this.#end.abandonReadBuffer();
    else if (!this.#goOn) this.#isPaused = true;
    return !this.#isPaused;
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    if (this.#isDiscarding) return;
    this.#pipelined ??= new PipelinedBytes();
    if (this.#visitor.isBodyWaiting) this.#goOn = this.#pipelined.push(bytes, start, end);
    else this.#pipelined.pushOrLose(bytes, start, end);
  }

  /** Pauses reading from the visitor until resume(). Called from within take(). */
  holdBack(): void {
    this.#goOn = false;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // The service was abandoned in the middle of a body, and a carrier may still send bytes from the read buffer.
    if (this.#isDiscarding) this.#end.abandonReadBuffer();
    this.#end.resume();
  }

  /** Processes bytes of the next request that arrived early, now that the previous request is answered. */
  takeEarly(): void {
    const pipelined = this.#pipelined;
    // An outer call of this method is already processing the early bytes.
    if (pipelined === null || pipelined.isLost || this.#isTakingEarly) return;
    this.#isTakingEarly = true;
    this.#goOn = true;
    let isStopped = false;
    while (!isStopped && pipelined.length > 0 && this.#pipelined === pipelined) {
      const piece = pipelined.shift();
      const at = this.#visitor.take(piece, 0, piece.length, false);
      isStopped = at < piece.length;
      if (isStopped) pipelined.putBack(piece.subarray(at));
    }
    this.#isTakingEarly = false;
    if (pipelined.length === 0 && this.#pipelined === pipelined) this.#pipelined = null;
    if (this.#goOn) this.resume();
  }

  /** Writes the early bytes to the given stream. The caller then takes over reading from the visitor. */
  handOver(to: ByteDuplex): void {
    const pipelined = this.#pipelined;
    this.discard();
    while (pipelined !== null && pipelined.length > 0) {
      const piece = pipelined.shift();
      to.write(piece, 0, piece.length, false);
    }
  }

  /** Returns the given bytes followed by the early bytes, as a single buffer. The caller then takes over reading from the visitor. */
  takeAll(first: Buffer): Buffer {
    const pieces = [first];
    for (const pipelined = this.#pipelined; pipelined !== null && pipelined.length > 0; )
      pieces.push(pipelined.shift());
    this.discard();
    return pieces.length === 1 ? first : Buffer.concat(pieces);
  }

  /** Discards early bytes and all further input of the visitor. */
  discard(): void {
    this.#isDiscarding = true;
    this.#pipelined = null;
  }
}

/**
 * Bytes that a visitor has sent behind an unanswered request: pipelined requests, the start of a body, or bytes for an upgraded protocol.
 * The visitor is still read meanwhile, to notice a disconnect, so the size is limited here.
 */
class PipelinedBytes {
  /** Piece of pipelined bytes that was taken out but not consumed. No other code holds the buffer, so it is put back without a copy. */
  #front: Buffer | null = null;
  readonly #queue = new ByteQueue();
  #isLost = false;

  get length(): number {
    return (this.#front?.length ?? 0) + this.#queue.length;
  }

  /** Whether the limit was exceeded and bytes were lost. Requests behind the current request are then never answered. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Keeps bytes of a pipelined request. Returns false if the caller must stop until resume(). */
  push(bytes: Buffer, start: number, end: number): boolean {
    this.#queue.push(bytes, start, end);
    return this.length < HTTP_EARLY_BYTES;
  }

  /** Keeps bytes of a pipelined request, or discards all kept bytes if the limit would be exceeded. */
  pushOrLose(bytes: Buffer, start: number, end: number): void {
    if (this.length + (end - start) > HTTP_EARLY_BYTES) {
      this.#isLost = true;
      this.#front = null;
      this.#queue.clear();
    }
    if (!this.#isLost) this.#queue.push(bytes, start, end);
  }

  /** Returns the next piece of the kept bytes. The caller owns the buffer. */
  shift(): Buffer {
    const front = this.#front;
    this.#front = null;
    return front ?? this.#queue.shift(this.#queue.length);
  }

  putBack(piece: Buffer): void {
    this.#front = piece;
  }
}
