// Base class for reading from net.Socket and native handles: passes bytes to the reader, chooses the read buffer, and limits how much is
// read before other connections get a turn. Subclasses implement the access to the socket.
import { type ByteReader, HEAD_ROOM_BYTES } from '../bytes/byte-duplex.ts';
import { ByteQueue } from '../bytes/byte-queue.ts';
import { type ReadBlock, readBuffers, SCRATCH } from '../bytes/read-buffers.ts';
import { smallMessages, TickReadBudget } from '../loop/tick-budget.ts';
import { tickFlush } from '../loop/tick-flush.ts';
import type { StaticReader } from './node-internals.ts';

/** A smaller read returns the connection to the shared scratch buffer, because it is no longer bulk. */
const BULK_AT_LEAST_BYTES = 16 * 1024;

export abstract class PacedReads implements StaticReader {
  /** Receiver of the bytes read from the connection. Null until a reader is attached. */
  protected reader: ByteReader | null = null;
  protected isOver = false;
  #bulk: ReadBlock | null = null;
  #bulkHeld = false;
  #lastRead = 0;
  /** Read budget of a connection that transfers bulk data. Null for other connections. */
  #turn: TickReadBudget | null = null;
  /** Bytes received on the connection before a reader was attached. */
  #early: ByteQueue | null = null;
  #earlyEnd = false;

  /** Starts reading the connection's bytes from the kernel, unless already reading. */
  protected abstract goOnReading(): void;
  /** Makes the connection read its next bytes into `view`, overriding the last nextView(). */
  protected abstract readInto(view: Buffer): void;
  /** Passes an exception to the reader, which decides about the connection and may still send a response. */
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
    // Marks the read buffer as in use before onData, because the connection can end during the call.
    this.#bulkHeld = block !== null;
    if (block !== null) tickFlush.flushNow();
    let goOn: boolean;
    try {
      goOn = this.reader.onData(whole, HEAD_ROOM_BYTES, HEAD_ROOM_BYTES + n, block !== null);
    } catch (error) {
      // The block is not reused, because unknown code may have kept a reference.
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
    this.#turn ??= new TickReadBudget();
    // Uses the real clock, because the duration of a turn matters and the owner's clock may be simulated.
    return this.#turn.goesOn(n, performance.now()) || this.#giveWay();
  }

  /**
   * Pauses until the next event loop turn. libuv would read up to 32 blocks before it checks another socket, and small messages of other
   * connections would wait.
   */
  #giveWay(): boolean {
    setImmediate(takeNextTurn, this);
    return false;
  }

  /** Continues reading from a busy connection in the next event loop turn. */
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

  /** Called when the reader has stopped and will not drain. Memory of delivered bytes is never reused; later reads use other memory. */
  abandonReadBuffer(): void {
    if (this.isOver || this.#bulk === null || !this.#bulkHeld) return;
    readBuffers.giveBack(this.#bulk, false);
    this.#bulk = null;
    this.#bulkHeld = false;
    this.#lastRead = 0;
    this.readInto(SCRATCH.view);
  }

  /** Called when the peer of the connection has certainly finished sending. */
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

  /** Stops reading from the connection permanently and returns its buffers. */
  protected stopReads(): void {
    this.isOver = true;
    this.#early = null;
    if (this.#bulk !== null) readBuffers.giveBack(this.#bulk, !this.#bulkHeld);
    this.#bulk = null;
  }
}

const takeNextTurn = (reads: PacedReads): void => reads.takeTurn();
