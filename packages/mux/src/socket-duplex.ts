// A TCP or TLS socket as a ByteDuplex: static reads, writes that say at once whether the kernel took them, half-close, real resets.
import type * as net from 'node:net';
import { TLSSocket } from 'node:tls';
import type { StreamReason } from '@tunnel/protocol';
import { type ByteDuplex, type ByteReader, HEAD_ROOM_BYTES } from './byte-duplex.ts';
import { ByteQueue } from './byte-queue.ts';
import { abandonOrDestroy } from './guard.ts';
import { MUX_LIMITS } from './limits.ts';
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
} from './node-internals.ts';
import { type ReadBlock, readBuffers, SCRATCH } from './read-buffers.ts';

/** A read of less than this goes back to the shared scratch buffer: the stream is not bulk (any more). */
const BULK_AT_LEAST_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

export class SocketDuplex implements ByteDuplex, StaticReader {
  readonly readPath: ReadPath;
  readonly #socket: net.Socket;
  readonly #isTls: boolean;
  #reader: ByteReader | null = null;
  #bulk: ReadBlock | null = null;
  #bulkHeld = false;
  #lastRead = 0;
  #turnBytes = 0;
  /** Bytes that came before the reader did. */
  #early: ByteQueue | null = null;
  #earlyEnd = false;
  /** It came, and is being told from a reset. */
  #endUntold = false;
  /** Set while the kernel has not taken all: later writes queue here, in order. */
  #waiting = false;
  #queue: ByteQueue | null = null;
  #endAsked: (() => void) | null = null;
  #over = false;

  constructor(attach: (reader: StaticReader) => { socket: net.Socket; readPath: ReadPath }, head?: Buffer) {
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

  read(reader: ByteReader): void {
    this.#reader = reader;
    const early = this.#early;
    this.#early = null;
    let goOn = true;
    while (early !== null && early.length > 0 && !this.#over) {
      const bytes = early.shift(early.length);
      goOn = reader.onData(bytes, 0, bytes.length, false);
    }
    if (this.#over) return;
    if (this.#earlyEnd) reader.onEnd();
    else if (goOn) this.#socket.resume();
  }

  // ---- reading ----

  nextView(): Buffer | null {
    if (this.#bulk === null) {
      if (this.#lastRead === SCRATCH.view.length) this.#bulk = readBuffers.borrow();
      return this.#bulk?.view ?? SCRATCH.view;
    }
    if (this.#lastRead < BULK_AT_LEAST_BYTES && !this.#bulkHeld) {
      readBuffers.giveBack(this.#bulk, true);
      this.#bulk = null;
      return SCRATCH.view;
    }
    return null;
  }

  onRead(n: number): boolean {
    this.#lastRead = n;
    if (this.#reader === null || this.#over) return false;
    const block = this.#bulk;
    const whole = block === null ? SCRATCH.whole : block.whole;
    // Until it is known: the end of this connection may come in the midst of it.
    this.#bulkHeld = block !== null;
    let goOn: boolean;
    try {
      goOn = this.#reader.onData(whole, HEAD_ROOM_BYTES, HEAD_ROOM_BYTES + n, block !== null);
    } catch (error) {
      // Nobody knows who has kept a part of the block.
      this.#abandon(error, 'socket.data');
      return false;
    }
    this.#bulkHeld = block !== null && !goOn;
    if (!goOn || this.#over) return false;
    this.#turnBytes += n;
    return this.#turnBytes < MUX_LIMITS.READ_TURN_BYTES || this.#giveWay();
  }

  /** libuv would read up to 32 blocks before it looks at another socket: the others' small messages go in between. */
  #giveWay(): boolean {
    this.#turnBytes = 0;
    setImmediate(this.#goOn);
    return false;
  }

  readonly #goOn = (): void => {
    if (!this.#over && !this.#bulkHeld) this.#socket.resume();
  };

  onChunk(chunk: Buffer): boolean {
    if (this.#reader !== null) return this.#over || this.#handOn(this.#reader, chunk);
    this.#early ??= new ByteQueue();
    this.#early.push(chunk, 0, chunk.length);
    return false;
  }

  #handOn(reader: ByteReader, chunk: Buffer): boolean {
    try {
      return reader.onData(chunk, 0, chunk.length, false);
    } catch (error) {
      this.#abandon(error, 'socket.data');
      return false;
    }
  }

  resume(): void {
    this.#bulkHeld = false;
    if (!this.#over) this.#socket.resume();
  }

  /** The reader stopped, or does so now, and will not drain: who uses what was read may do so for ever; the rest is read into other memory. */
  leaveMemory(): void {
    if (this.#over || this.#bulk === null || !this.#bulkHeld) return;
    readBuffers.giveBack(this.#bulk, false);
    this.#bulk = null;
    this.#bulkHeld = false;
    this.#lastRead = 0;
    readInto(this.#socket, SCRATCH.view);
  }

  readonly #onEnd = (): void => {
    if (this.#over) return;
    this.#endUntold = true;
    confirmEnd(this.#socket, this.#tellEnd);
  };

  readonly #tellEnd = (): void => {
    if (this.#over || !this.#endUntold) return;
    this.#endUntold = false;
    if (this.#reader === null) this.#earlyEnd = true;
    else {
      try {
        this.#reader.onEnd();
      } catch (error) {
        this.#abandon(error, 'socket.end');
      }
    }
  };

  // ---- writing ----

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#over) return true;
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
    if (this.#over) return;
    try {
      this.#writeOn();
    } catch (error) {
      this.#abandon(error, 'socket.drain');
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
    else this.#reader?.onDrain();
  }

  end(onFlushed?: () => void): void {
    if (this.#over || this.#endAsked !== null) return;
    // Node calls the callback of end() with an error, too: only a clean finish counts.
    this.#endAsked = () => {
      if (!this.#socket.writableFinished) return;
      try {
        onFlushed?.();
      } catch (error) {
        this.#abandon(error, 'socket.flushed');
      }
    };
    if (!this.#waiting) this.#socket.end(this.#endAsked);
  }

  // ---- the end ----

  reset(_reason: StreamReason): void {
    if (this.#over) return;
    this.#finish();
    resetSafely(this.#socket);
  }

  /**
   * Our direction has ended, and the kernel has all of it: it goes on delivering that without us. A reset would take it away from a peer that has
   * not read so far. What the peer sends from here on is answered by a reset.
   */
  letGo(): void {
    if (this.#over) return;
    this.#finish();
    this.#socket.destroy();
  }

  /**
   * Another protocol begins: somebody else reads and writes the socket from here on. Not within onData(), and not while bytes wait to be written.
   * null: it is over already.
   */
  release(): net.Socket | null {
    if (this.#over) return null;
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
    if (this.#over) return;
    this.#finish();
    try {
      this.#reader?.onReset({ code: 'peer-reset', text });
    } catch (error) {
      this.#abandon(error, 'socket.reset');
    }
  }

  /** The reader says what becomes of the connection: it may still have an answer to give. */
  #abandon(error: unknown, where: string): void {
    if (this.#reader === null) this.#socket.destroy();
    else abandonOrDestroy(this.#reader, error, where, this.#socket);
  }

  #finish(): void {
    this.#over = true;
    this.#queue = null;
    this.#early = null;
    if (this.#bulk !== null) readBuffers.giveBack(this.#bulk, !this.#bulkHeld);
    this.#bulk = null;
  }
}

/** An accepted socket; its server has allowHalfOpen, noDelay and pauseOnConnect set. */
export const adoptSocket = (socket: net.Socket, head?: Buffer): SocketDuplex =>
  new SocketDuplex((reader) => ({ socket, readPath: readStatically(socket, reader) }), head);
