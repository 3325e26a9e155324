// The edge's end of a connection to a visitor with a full kernel buffer, until the test makes room. Used by tests only.
import type { ByteReader } from '@tunnel/mux';
import type { VisitorDuplex } from '../visitor.ts';

export class StalledVisitor implements VisitorDuplex {
  /** Text written so far, including bytes still in the queue. */
  text = '';
  queuedBytes = 0;
  takenBytes = 0;
  /** Largest number of bytes that waited at any time. */
  mostQueuedBytes = 0;
  readonly hasLostPeer = false;
  isReset = false;
  isEnded = false;
  /** Whether the edge reads the visitor. Bytes that arrive while the edge does not read are a mistake of the test. */
  isRead = false;
  readonly #isTls: boolean;
  #roomBytes: number;
  #isDraining = false;
  #reader: ByteReader | null = null;
  #onFlushed: (() => void) | undefined;

  /** With `isTls`, write() always reports a full buffer. */
  constructor(isTls: boolean, roomBytes = 0) {
    this.#isTls = isTls;
    this.#roomBytes = roomBytes;
  }

  read(reader: ByteReader): void {
    this.#reader = reader;
    this.isRead = true;
  }

  write(bytes: Buffer, start: number, end: number): boolean {
    if (this.isReset || this.isEnded) return true;
    this.text += bytes.toString('latin1', start, end);
    this.queuedBytes += end - start;
    const isFree = this.#take();
    this.mostQueuedBytes = Math.max(this.mostQueuedBytes, this.queuedBytes);
    if (isFree && this.#isTls && this.#roomBytes === Number.POSITIVE_INFINITY) this.#drainLater();
    return isFree && !this.#isTls;
  }

  /** Reports a drain in a later event loop turn, as TLS does for bytes that the kernel has taken. */
  #drainLater(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    setImmediate(() => {
      this.#isDraining = false;
      if (!this.isReset && !this.isEnded) this.#reader?.onDrain();
    });
  }

  #take(): boolean {
    const taken = Math.min(this.#roomBytes, this.queuedBytes);
    this.#roomBytes -= taken;
    this.queuedBytes -= taken;
    this.takenBytes += taken;
    return this.queuedBytes === 0;
  }

  resume(): void {
    this.isRead = true;
  }

  end(onFlushed?: () => void): void {
    this.isEnded = true;
    this.#onFlushed = onFlushed;
    if (this.queuedBytes === 0) onFlushed?.();
  }

  abandonReadBuffer(): void {}

  detach(): void {}

  release(): null {
    return null;
  }

  reset(): void {
    this.isReset = true;
    this.queuedBytes = 0;
  }

  // ---- what the visitor does ----

  /** Sends text as the visitor. Returns false if the edge stops reading. */
  send(text: string): boolean {
    const bytes = Buffer.from(text, 'latin1');
    this.isRead = this.#reader?.onData(bytes, 0, bytes.length, false) ?? false;
    return this.isRead;
  }

  /** Lets the kernel take the given number of further bytes. */
  takeMore(bytes: number): void {
    this.#roomBytes += bytes;
    if (!this.#take()) return;
    if (this.isEnded) this.#onFlushed?.();
    else this.#reader?.onDrain();
  }

  /** From now on, lets the kernel take all bytes at once. */
  takeAll(): void {
    this.takeMore(Number.POSITIVE_INFINITY);
  }

  leave(): void {
    this.#reader?.onEnd();
  }
}
