// The visitor's end of a relayed connection. Until the stream is open it keeps the first bytes, remembers a half-close and
// tells when the visitor leaves; splice then reads through it. At the end it tells when the last byte is with the kernel.
import { type ByteEnd, type ByteReader, HEAD_ROOM_BYTES } from '@tunnel/mux';
import { LIMITS, type StreamReason } from '@tunnel/protocol';

export interface HeldEndOwner {
  /** The visitor reset the connection before anyone read from it. */
  onLeft(): void;
  /** After end(): nothing waits here any more, be it sent or cut off. */
  onFlushed(): void;
}

export class HeldEnd implements ByteEnd, ByteReader {
  readonly #inner: ByteEnd;
  readonly #owner: HeldEndOwner;
  #reader: ByteReader | null = null;
  #held: Buffer[] | null = null;
  #heldBytes = 0;
  #sourceEnded = false;
  /** The last write has not wholly left. */
  #waiting = false;
  #endAsked = false;

  constructor(inner: ByteEnd, owner: HeldEndOwner) {
    this.#inner = inner;
    this.#owner = owner;
  }

  /** Apart from the constructor: what is already there may call back at once. */
  hold(): void {
    this.#inner.read(this);
  }

  /** false after end() while bytes still wait for a slow visitor; onFlushed follows then. */
  get isFlushed(): boolean {
    return !this.#waiting;
  }

  read(reader: ByteReader): void {
    this.#reader = reader;
    const goOn = this.#giveHeld(reader);
    if (this.#sourceEnded) reader.onEnd();
    else if (goOn) this.#inner.resume();
  }

  #giveHeld(reader: ByteReader): boolean {
    const held = this.#held;
    if (held === null) return true;
    this.#held = null;
    const bytes = Buffer.concat([Buffer.alloc(HEAD_ROOM_BYTES), ...held]);
    return reader.onData(bytes, HEAD_ROOM_BYTES, bytes.length, true);
  }

  // ---- from the socket ----

  onData(bytes: Buffer, start: number, end: number, lend: boolean): boolean {
    if (this.#reader !== null) return this.#reader.onData(bytes, start, end, lend);
    this.#held ??= [];
    this.#held.push(Buffer.from(bytes.subarray(start, end)));
    this.#heldBytes += end - start;
    return this.#heldBytes < LIMITS.VISITOR_HOLD_BYTES;
  }

  onDrain(): void {
    this.#waiting = false;
    if (!this.#endAsked) {
      this.#reader?.onDrain();
      return;
    }
    this.#inner.end();
    this.#owner.onFlushed();
  }

  onEnd(): void {
    this.#sourceEnded = true;
    this.#reader?.onEnd();
  }

  onReset(reason: StreamReason): void {
    if (this.#reader === null) {
      this.#owner.onLeft();
      return;
    }
    this.#reader.onReset(reason);
    if (this.#waiting && this.#endAsked) this.#owner.onFlushed();
  }

  // ---- towards the socket ----

  write(bytes: Buffer, start: number, end: number, lend: boolean): boolean {
    this.#waiting = !this.#inner.write(bytes, start, end, lend);
    return !this.#waiting;
  }

  resume(): void {
    this.#inner.resume();
  }

  /** Asked of the socket only when the rest has left: it would not say when that is otherwise. */
  end(): void {
    this.#endAsked = true;
    if (!this.#waiting) this.#inner.end();
  }

  reset(reason: StreamReason): void {
    this.#held = null;
    this.#inner.reset(reason);
  }
}
