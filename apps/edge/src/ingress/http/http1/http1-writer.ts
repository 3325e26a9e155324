// What goes out to one HTTP/1.1 visitor, and the one rule for all of it: a write that says false stops its source, whatever that is. The head
// waits for the first bytes of its body, so that a small answer is one write.
import type { ByteDuplex } from '@tunnel/mux';
import { EDGE_LIMITS } from '../../../limits.ts';
import type { ChunkWriter } from '../../../upstream/response-handler.ts';

/** Up to here a copy behind the head is cheaper than a write of its own. */
const JOINED_MAX_BYTES = 16 * 1024;

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
    if (this.#queuedOwnBytes > EDGE_LIMITS.HTTP_QUEUE_MAX_BYTES) this.#onOverrun();
    return false;
  }
}
