// ByteDuplex of a TCP or TLS socket: static reads, writes that report immediately whether the kernel accepted the bytes, half-close, and
// real resets.
import type * as net from 'node:net';
import { TLSSocket } from 'node:tls';
import type { StreamReason } from '@tunnel/protocol';
import type { SocketEnd } from '../bytes/byte-duplex.ts';
import { ByteQueue } from '../bytes/byte-queue.ts';
import { abandonOrDestroy } from '../loop/guard.ts';
import {
  confirmEnd,
  hasLostPeer,
  type ReadPath,
  readInto,
  readOrdinarily,
  readStatically,
  resetSafely,
  type StaticReader,
  takenBytes,
} from '../native/node-internals.ts';
import { PacedReads } from '../native/paced-reads.ts';

const NOTHING = Buffer.alloc(0);

export class SocketDuplex extends PacedReads implements SocketEnd {
  readonly readPath: ReadPath;
  readonly #socket: net.Socket;
  readonly #isTls: boolean;
  /** True while the socket checks whether a received end is a normal end or a reset. */
  #endUntold = false;
  /** True while the kernel has not accepted all bytes. Later writes are queued here, in order. */
  #waiting = false;
  #queue: ByteQueue | null = null;
  #endAsked: (() => void) | null = null;

  constructor(attach: (reader: StaticReader) => { socket: net.Socket; readPath: ReadPath }, head?: Buffer) {
    super();
    if (head !== undefined && head.length > 0) this.onChunk(head);
    const { socket, readPath } = attach(this);
    this.#socket = socket;
    this.#isTls = socket instanceof TLSSocket;
    this.readPath = readPath;
    socket.on('end', this.#onEnd);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
  }

  /** Bytes written to the socket that the kernel has not accepted yet. */
  get queuedBytes(): number {
    return this.#socket.writableLength + (this.#queue?.length ?? 0);
  }

  /** Total bytes accepted by the kernel so far. If the value does not change while bytes are queued, the peer is not reading. */
  get takenBytes(): number {
    return takenBytes(this.#socket);
  }

  /** True if the peer has disconnected. Needed while reading is paused, because no event reports the disconnect then. */
  get hasLostPeer(): boolean {
    return hasLostPeer(this.#socket);
  }

  // ---- reading ----

  protected goOnReading(): void {
    this.#socket.resume();
  }

  protected readInto(view: Buffer): void {
    readInto(this.#socket, view);
  }

  readonly #onEnd = (): void => {
    if (this.isOver) return;
    this.#endUntold = true;
    confirmEnd(this.#socket, this.#tellEnd);
  };

  readonly #tellEnd = (): void => {
    if (this.isOver || !this.#endUntold) return;
    this.#endUntold = false;
    this.tellEnd();
  };

  // ---- writing ----

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.isOver) return true;
    if (this.#waiting) {
      this.#queue ??= new ByteQueue();
      this.#queue.push(bytes, start, end);
      return false;
    }
    return this.#writeNow(bytes, start, end, borrowed);
  }

  /**
   * Returns true if the kernel accepted all bytes; otherwise #onFlushed is called later. Memory that is not borrowed is copied first,
   * because the kernel may leave a part pending.
   */
  #writeNow(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const view = borrowed ? bytes.subarray(start, end) : Buffer.from(bytes.subarray(start, end));
    if (this.#isTls) {
      // TLS never completes a write at once, so the write's callback is used.
      this.#waiting = true;
      this.#socket.write(view, this.#onFlushed);
      return false;
    }
    this.#socket.write(view);
    if (this.#socket.writableLength === 0) return true;
    // Appends an empty write: its callback is the only reliable sign that all earlier bytes were flushed.
    this.#waiting = true;
    this.#socket.write(NOTHING, this.#onFlushed);
    return false;
  }

  readonly #onFlushed = (): void => {
    if (this.isOver) return;
    try {
      this.#writeOn();
    } catch (error) {
      this.abandon(error, 'socket.drain');
    }
  };

  #writeOn(): void {
    const queue = this.#queue;
    while (queue !== null && queue.length > 0) {
      const bytes = queue.shift(queue.length);
      if (!this.#writeNow(bytes, 0, bytes.length, true)) return;
    }
    this.#waiting = false;
    this.#queue = null;
    if (this.#endAsked !== null) this.#socket.end(this.#endAsked);
    else this.reader?.onDrain();
  }

  end(onFlushed?: () => void): void {
    if (this.isOver || this.#endAsked !== null) return;
    // Node.js also calls the callback of end() on errors. Only a clean finish counts.
    this.#endAsked = () => {
      if (!this.#socket.writableFinished) return;
      try {
        onFlushed?.();
      } catch (error) {
        this.abandon(error, 'socket.flushed');
      }
    };
    if (!this.#waiting) this.#socket.end(this.#endAsked);
  }

  // ---- the end ----

  reset(_reason: StreamReason): void {
    if (this.isOver) return;
    this.#finish();
    resetSafely(this.#socket);
  }

  /**
   * Detaches from a socket after the sending direction ended and the kernel accepted all bytes. The kernel keeps delivering the bytes; a
   * reset would discard bytes that the peer has not read yet. Later data from the peer is answered with a reset.
   */
  detach(): void {
    if (this.isOver) return;
    this.#finish();
    this.#socket.destroy();
  }

  /**
   * Hands the socket over to another protocol, which reads and writes from now on. Must not be called within onData() or while bytes are
   * queued. Returns null if the socket has closed already.
   */
  release(): net.Socket | null {
    if (this.isOver) return null;
    this.#finish();
    const socket = this.#socket;
    // Ignores errors until the next owner listens, because an error without a listener would end the process.
    socket.on('error', () => {});
    socket.off('end', this.#onEnd).off('error', this.#onError).off('close', this.#onClose);
    readOrdinarily(socket);
    return socket;
  }

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    this.#loseWith(error.code ?? error.message);
  };

  /** A close after both directions have ended is silent. Any other close is reported as a reset. */
  readonly #onClose = (): void => {
    if (!this.#socket.readableEnded || !this.#socket.writableFinished) return this.#loseWith('closed');
    this.#tellEnd();
    this.#finish();
  };

  #loseWith(text: string): void {
    if (this.isOver) return;
    this.#finish();
    try {
      this.reader?.onReset({ code: 'peer-reset', text });
    } catch (error) {
      this.abandon(error, 'socket.reset');
    }
  }

  protected abandon(error: unknown, where: string): void {
    if (this.reader === null) this.#socket.destroy();
    else abandonOrDestroy(this.reader, error, where, this.#socket);
  }

  #finish(): void {
    this.stopReads();
    this.#queue = null;
  }
}

/** Wraps an accepted socket. Its server must set allowHalfOpen, noDelay and pauseOnConnect. */
export const adoptSocket = (socket: net.Socket, head?: Buffer): SocketDuplex =>
  new SocketDuplex((reader) => ({ socket, readPath: readStatically(socket, reader) }), head);
