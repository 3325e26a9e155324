// The end of a visitor's connection whose kernel takes some bytes and then none, until a test lets it go on. Used by tests only.
import type { ByteReader } from '@tunnel/mux';
import type { VisitorDuplex } from '../visitor.ts';

export class StalledVisitor implements VisitorDuplex {
  /** What was written, and has left or waits. */
  text = '';
  queuedBytes = 0;
  takenBytes = 0;
  /** The most that ever waited. */
  mostQueuedBytes = 0;
  readonly hasLostPeer = false;
  isReset = false;
  isEnded = false;
  /** Whether the visitor is read; bytes that come while it is not are a mistake of the test. */
  isRead = false;
  readonly #isTls: boolean;
  #roomBytes: number;
  #isDraining = false;
  #reader: ByteReader | null = null;
  #onFlushed: (() => void) | undefined;

  /** Behind TLS no write is taken at once. */
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

  /** As TLS says of what the kernel took: in a turn of its own. */
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

  /** false: it is not read any more. */
  send(text: string): boolean {
    const bytes = Buffer.from(text, 'latin1');
    this.isRead = this.#reader?.onData(bytes, 0, bytes.length, false) ?? false;
    return this.isRead;
  }

  /** The kernel takes so much more. */
  takeMore(bytes: number): void {
    this.#roomBytes += bytes;
    if (!this.#take()) return;
    if (this.isEnded) this.#onFlushed?.();
    else this.#reader?.onDrain();
  }

  /** From now on all of it, as fast as it comes. */
  takeAll(): void {
    this.takeMore(Number.POSITIVE_INFINITY);
  }

  leave(): void {
    this.#reader?.onEnd();
  }
}
