// How every end of a socket is read, be it a net.Socket or a bare handle: to whom its bytes go, into which memory they come, and how much of
// them before the others have their turn. What it is read from, its subclass knows.
import { type ByteReader, HEAD_ROOM_BYTES } from '../bytes/byte-duplex.ts';
import { ByteQueue } from '../bytes/byte-queue.ts';
import { type ReadBlock, readBuffers, SCRATCH } from '../bytes/read-buffers.ts';
import { ReadTurn, smallMessages } from '../loop/read-turn.ts';
import { turnEnd } from '../loop/turn-end.ts';
import type { StaticReader } from './node-internals.ts';

/** A read of less than this goes back to the shared scratch buffer: the stream is not bulk (any more). */
const BULK_AT_LEAST_BYTES = 16 * 1024;

export abstract class PacedReads implements StaticReader {
  /** null: nobody reads yet. */
  protected reader: ByteReader | null = null;
  protected isOver = false;
  #bulk: ReadBlock | null = null;
  #bulkHeld = false;
  #lastRead = 0;
  /** While it is bulk. */
  #turn: ReadTurn | null = null;
  /** Bytes that came before the reader did. */
  #early: ByteQueue | null = null;
  #earlyEnd = false;

  /** Reads from the kernel, if it does not already. */
  protected abstract goOnReading(): void;
  /** The next bytes go there, whatever nextView() said last. */
  protected abstract readInto(view: Buffer): void;
  /** The reader says what becomes of the connection: it may still have an answer to give. */
  protected abstract abandon(error: unknown, where: string): void;

  read(reader: ByteReader): void {
    this.reader = reader;
    const early = this.#early;
    this.#early = null;
    let goOn = true;
    while (early !== null && early.length > 0 && !this.isOver) {
      const bytes = early.shift(early.length);
      goOn = reader.onData(bytes, 0, bytes.length, false);
    }
    if (this.isOver) return;
    if (this.#earlyEnd) reader.onEnd();
    else if (goOn) this.goOnReading();
  }

  nextView(): Buffer | null {
    if (this.#bulk === null) {
      if (this.#lastRead === SCRATCH.view.length && !this.isOver) this.#bulk = readBuffers.borrow();
      return this.#bulkView() ?? SCRATCH.view;
    }
    if (this.#lastRead < BULK_AT_LEAST_BYTES && !this.#bulkHeld) {
      readBuffers.giveBack(this.#bulk, true);
      this.#bulk = null;
      this.#turn = null;
      return SCRATCH.view;
    }
    return this.#bulkView();
  }

  #bulkView(): Buffer | null {
    if (this.#turn?.isShared) return this.#bulk?.shortView ?? null;
    return this.#bulk?.view ?? null;
  }

  onRead(n: number): boolean {
    this.#lastRead = n;
    if (this.reader === null || this.isOver) return false;
    const block = this.#bulk;
    const whole = block === null ? SCRATCH.whole : block.whole;
    // Until it is known: the end of this connection may come in the midst of it.
    this.#bulkHeld = block !== null;
    if (block !== null) turnEnd.beforeBulk();
    let goOn: boolean;
    try {
      goOn = this.reader.onData(whole, HEAD_ROOM_BYTES, HEAD_ROOM_BYTES + n, block !== null);
    } catch (error) {
      // Nobody knows who has kept a part of the block.
      this.abandon(error, 'socket.data');
      return false;
    }
    this.#bulkHeld = block !== null && !goOn;
    if (!goOn || this.isOver) return false;
    return this.#goesOn(n);
  }

  #goesOn(n: number): boolean {
    if (this.#bulk === null && n < SCRATCH.view.length) {
      smallMessages.passed(n);
      return true;
    }
    this.#turn ??= new ReadTurn();
    // A turn of the loop takes real time, whatever clock the owner of this socket has.
    return this.#turn.goesOn(n, performance.now()) || this.#giveWay();
  }

  /** libuv would read up to 32 blocks before it looks at another socket: the others' small messages go in between. */
  #giveWay(): boolean {
    setImmediate(takeNextTurn, this);
    return false;
  }

  /** Its turn has come again. */
  takeTurn(): void {
    if (!this.isOver && !this.#bulkHeld) this.goOnReading();
  }

  onChunk(chunk: Buffer): boolean {
    if (this.reader !== null) return this.isOver || this.#handOn(this.reader, chunk);
    this.#early ??= new ByteQueue();
    this.#early.push(chunk, 0, chunk.length);
    return false;
  }

  #handOn(reader: ByteReader, chunk: Buffer): boolean {
    try {
      return reader.onData(chunk, 0, chunk.length, false);
    } catch (error) {
      this.abandon(error, 'socket.data');
      return false;
    }
  }

  resume(): void {
    this.#bulkHeld = false;
    if (!this.isOver) this.goOnReading();
  }

  /** The reader stopped, or does so now, and will not drain: who uses what was read may do so for ever; the rest is read into other memory. */
  leaveMemory(): void {
    if (this.isOver || this.#bulk === null || !this.#bulkHeld) return;
    readBuffers.giveBack(this.#bulk, false);
    this.#bulk = null;
    this.#bulkHeld = false;
    this.#lastRead = 0;
    this.readInto(SCRATCH.view);
  }

  /** The peer has finished sending, and that is sure. */
  protected tellEnd(): void {
    if (this.reader === null) {
      this.#earlyEnd = true;
      return;
    }
    try {
      this.reader.onEnd();
    } catch (error) {
      this.abandon(error, 'socket.end');
    }
  }

  /** It is over: nothing is read any more, and memory goes back. */
  protected stopReads(): void {
    this.isOver = true;
    this.#early = null;
    if (this.#bulk !== null) readBuffers.giveBack(this.#bulk, !this.#bulkHeld);
    this.#bulk = null;
  }
}

const takeNextTurn = (reads: PacedReads): void => reads.takeTurn();
