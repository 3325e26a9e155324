// Visitor's end of a connection while the client's stream is opening: keeps the first bytes, remembers a half-close, and reports a
// disconnect. After the stream is open, splice reads through it, starting with the kept bytes.
import { type ByteDuplex, type ByteReader, HEAD_ROOM_BYTES } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';
import type { RelayConnection } from './relay-connection.ts';

const HEAD_ROOM = Buffer.alloc(HEAD_ROOM_BYTES);

type Owner = Pick<RelayConnection, 'onLeft' | 'abandon'>;

export class PreconnectBuffer implements ByteDuplex, ByteReader {
  readonly #inner: ByteDuplex;
  readonly #owner: Owner;
  #reader: ByteReader | null = null;
  #held: Buffer[] | null = null;
  #heldBytes = 0;
  #sourceEnded = false;

  /** Keeps bytes that a visitor sends before the stream is open. `first` holds bytes already read, or null. */
  constructor(inner: ByteDuplex, owner: Owner, first: Buffer | null = null) {
    this.#inner = inner;
    this.#owner = owner;
    if (first === null) return;
    this.#held = [first];
    this.#heldBytes = first.length;
  }

  /** Starts reading. Separate from the constructor, because bytes that have already arrived may call back synchronously. */
  hold(): void {
    this.#inner.read(this);
  }

  read(reader: ByteReader): void {
    this.#reader = reader;
    this.#held ??= [];
    this.#giveHeld(reader, this.#held);
  }

  /** Delivers the kept bytes. When the reader has accepted all of them, the socket's callbacks go directly to the reader. */
  #giveHeld(reader: ByteReader, held: Buffer[]): void {
    if (held.length > 0) {
      const bytes = Buffer.concat([HEAD_ROOM, ...held]);
      held.length = 0;
      // Bytes of the visitor that arrive before resume() are queued.
      if (!reader.onData(bytes, HEAD_ROOM_BYTES, bytes.length, true)) return;
    }
    this.#held = null;
    if (this.#sourceEnded) reader.onEnd();
    else this.#inner.resume();
  }

  // ---- from the socket ----

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const reader = this.#reader;
    if (reader !== null && this.#held === null) return reader.onData(bytes, start, end, borrowed);
    this.#held ??= [];
    this.#held.push(Buffer.from(bytes.subarray(start, end)));
    this.#heldBytes += end - start;
    return reader === null && this.#heldBytes < EDGE_LIMITS.PRECONNECT_BUFFER_BYTES;
  }

  onDrain(): void {
    this.#reader?.onDrain();
  }

  onEnd(): void {
    this.#sourceEnded = true;
    if (this.#held === null) this.#reader?.onEnd();
  }

  onReset(reason: StreamReason): void {
    if (this.#reader !== null) this.#reader.onReset(reason);
    else this.#owner.onLeft();
  }

  abandon(error: unknown, where: string): void {
    (this.#reader ?? this.#owner).abandon(error, where);
  }

  // ---- towards the socket ----

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    return this.#inner.write(bytes, start, end, borrowed);
  }

  resume(): void {
    if (this.#reader !== null && this.#held !== null) this.#giveHeld(this.#reader, this.#held);
    else this.#inner.resume();
  }

  end(onFlushed?: () => void): void {
    this.#inner.end(onFlushed);
  }

  reset(reason: StreamReason): void {
    this.#held = null;
    this.#inner.reset(reason);
  }
}
