// A TCP or TLS socket as a ByteDuplex: static reads, writes that say at once whether the kernel took them, half-close, real resets.
import type * as net from 'node:net';
import { TLSSocket } from 'node:tls';
import type { StreamReason } from '@tunnel/protocol';
import type { SocketEnd } from '../bytes/byte-duplex.ts';
import { ByteQueue } from '../bytes/byte-queue.ts';
import { SCRATCH } from '../bytes/read-buffers.ts';
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
  /** It came, and is being told from a reset. */
  #endUntold = false;
  /** Set while the kernel has not taken all: later writes queue here, in order. */
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

  /** Bytes written here that the kernel has not taken yet. */
  get queuedBytes(): number {
    return this.#socket.writableLength + (this.#queue?.length ?? 0);
  }

  /** What the kernel has taken so far, bit by bit: while bytes are queued and this stands still, so does the peer. */
  get takenBytes(): number {
    return takenBytes(this.#socket);
  }

  /** Asked of a peer that is not read: of that one nobody else would tell. */
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
   * true when the kernel took all; else onFlushed comes when it has. Memory that is not borrowed is copied beforehand, since the
   * kernel might keep a part waiting.
   */
  #writeNow(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const view = borrowed ? bytes.subarray(start, end) : Buffer.from(bytes.subarray(start, end));
    if (this.#isTls) {
      // TLS never takes bytes at once: the write's own callback it is.
      this.#waiting = true;
      this.#socket.write(view, this.#onFlushed);
      return false;
    }
    this.#socket.write(view);
    if (this.#socket.writableLength === 0) return true;
    // An empty write behind what waits: its callback is the one sure sign that all before it has left.
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
    // Node calls the callback of end() with an error, too: only a clean finish counts.
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
   * Our direction has ended, and the kernel has all of it: it goes on delivering that without us. A reset would take it away from a peer that has
   * not read so far. What the peer sends from here on is answered by a reset.
   */
  letGo(): void {
    if (this.isOver) return;
    this.#finish();
    this.#socket.destroy();
  }

  /**
   * Another protocol begins: somebody else reads and writes the socket from here on. Not within onData(), and not while bytes wait to be written.
   * null: it is over already.
   */
  release(): net.Socket | null {
    if (this.isOver) return null;
    this.#finish();
    const socket = this.#socket;
    // Until its next owner listens; an error without a listener would end the process.
    socket.on('error', () => {});
    socket.off('end', this.#onEnd).off('error', this.#onError).off('close', this.#onClose);
    readOrdinarily(socket, SCRATCH.view);
    return socket;
  }

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    this.#loseWith(error.code ?? error.message);
  };

  /** A close after both directions have ended is silent; every other one cuts something off. */
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

/** An accepted socket; its server has allowHalfOpen, noDelay and pauseOnConnect set. */
export const adoptSocket = (socket: net.Socket, head?: Buffer): SocketDuplex =>
  new SocketDuplex((reader) => ({ socket, readPath: readStatically(socket, reader) }), head);
