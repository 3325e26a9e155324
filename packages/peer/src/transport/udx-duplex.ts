// ByteDuplex of a udx stream. udx keeps written memory until the other side has acknowledged it, so every write is copied. Reading from udx
// cannot be paused, so unread bytes are buffered up to a limit.
import { type ByteDuplex, ByteQueue, type ByteReader, type Guarded, guard } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { UdxStream } from './udx-types.ts';

/** Maximum unread bytes of a direct connection. Never reached in practice, because the owner has its own credit. */
const PEER_TRANSPORT_UNREAD_MAX_BYTES = 4 * 1024 * 1024;

export class UdxDuplex implements ByteDuplex, Guarded {
  readonly #stream: UdxStream;
  readonly #onOver: () => void;
  #reader: ByteReader | null = null;
  /** Bytes the reader has not taken yet. #endUnread marks an end behind them. */
  #unread: ByteQueue | null = null;
  #endUnread = false;
  #isStopped = true;
  #hasEnded = false;
  #isFlushed = false;
  #isClosed = false;
  #waiting = false;
  #endAsked: (() => void) | null = null;
  #over = false;

  constructor(stream: UdxStream, onOver: () => void) {
    this.#stream = stream;
    this.#onOver = onOver;
    guard.listen(stream, 'data', this, 'peer', this.#onData);
    guard.listen(stream, 'end', this, 'peer', this.#onEnd);
    guard.listen(stream, 'drain', this, 'peer', this.#onDrain);
    guard.listen(stream, 'finish', this, 'peer', this.#onFinish);
    guard.listen(stream, 'error', this, 'peer', (error: NodeJS.ErrnoException) =>
      this.#lose(error.code ?? error.message),
    );
    guard.listen(stream, 'close', this, 'peer', () => this.#lose('closed'));
  }

  read(reader: ByteReader): void {
    this.#reader = reader;
    this.resume();
  }

  resume(): void {
    if (this.#over || this.#reader === null) return;
    this.#isStopped = false;
    const unread = this.#unread;
    while (unread !== null && unread.length > 0 && !this.#isStopped && !this.#over) {
      const bytes = unread.shift(unread.length);
      this.#isStopped = !this.#reader.onData(bytes, 0, bytes.length, false);
    }
    if (this.#isStopped || this.#over) return;
    this.#unread = null;
    if (!this.#endUnread) return;
    this.#endUnread = false;
    this.#reader.onEnd();
    if (this.#isClosed && !this.#over) this.#finish();
  }

  write(bytes: Buffer, start: number, end: number): boolean {
    if (this.#over || this.#endAsked !== null) return true;
    if (this.#stream.write(Buffer.from(bytes.subarray(start, end)))) return !this.#waiting;
    this.#waiting = true;
    // The written bytes were copied; returning false only slows down the writer.
    return false;
  }

  end(onFlushed: () => void = NOTHING): void {
    if (this.#over || this.#endAsked !== null) return;
    this.#endAsked = onFlushed;
    this.#stream.end();
  }

  reset(_reason?: StreamReason): void {
    if (this.#over) return;
    this.#finish();
    this.#stream.destroy();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#over) return;
    if (!this.#isStopped && this.#reader !== null) {
      this.#isStopped = !this.#reader.onData(chunk, 0, chunk.length, false);
      return;
    }
    this.#unread ??= new ByteQueue();
    this.#unread.push(chunk, 0, chunk.length);
    if (this.#unread.length <= PEER_TRANSPORT_UNREAD_MAX_BYTES) return;
    this.#stream.destroy();
    this.#lose('too many unread bytes');
  };

  readonly #onEnd = (): void => {
    if (this.#over) return;
    this.#hasEnded = true;
    if (this.#isStopped) this.#endUnread = true;
    else this.#reader?.onEnd();
  };

  readonly #onDrain = (): void => {
    if (this.#over || !this.#waiting) return;
    this.#waiting = false;
    if (this.#endAsked === null) this.#reader?.onDrain();
  };

  readonly #onFinish = (): void => {
    if (this.#over) return;
    this.#isFlushed = true;
    this.#endAsked?.();
  };

  /** A close after both directions have ended is silent. Any other close is reported as a reset. */
  #lose(text: string): void {
    if (this.#over) return;
    const isWhole = this.#hasEnded && this.#isFlushed;
    // Bytes that the reader has not read yet, and the end, must still be delivered after the close.
    this.#isClosed = true;
    if (isWhole && this.#endUnread) return;
    this.#finish();
    if (!isWhole) this.#reader?.onReset({ code: 'peer-reset', text });
  }

  abandon(error: unknown, where: string): void {
    try {
      this.#reader?.abandon(error, where);
    } finally {
      this.reset();
    }
  }

  #finish(): void {
    this.#over = true;
    this.#unread = null;
    this.#onOver();
  }
}

const NOTHING = (): void => {};
