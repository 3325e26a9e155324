// Reads from a carrier's socket. A quiet carrier reads into the shared scratch buffer and delivers the bytes immediately, not borrowed. A
// busy carrier borrows a block: its bytes are delivered as borrowed, and TLS records (16 KB each) are collected and delivered once per
// event loop turn, so that eight records become one write to the public socket.
import type * as net from 'node:net';
import { type ReadBlock, readBuffers, SCRATCH } from '../bytes/read-buffers.ts';
import type { Guarded } from '../loop/guard.ts';
import { TickReadBudget } from '../loop/tick-budget.ts';
import { tickFlush } from '../loop/tick-flush.ts';
import { readDirectly } from '../native/direct-reads.ts';
import { type ReadPath, readStatically, type StaticReader } from '../native/node-internals.ts';

type OnBytes = (bytes: Buffer, start: number, end: number, borrowed: boolean) => boolean;

/** Maximum size of a TLS record from OpenSSL. The read view must have room for a whole record. */
const TLS_RECORD_BYTES = 16 * 1024;
/** A read turn of a carrier with fewer bytes does not count as bulk. */
const BULK_AT_LEAST_BYTES = 16 * 1024;
/**
 * Number of quiet turns in a row that end bulk mode. A bulk carrier runs dry hundreds of times per second. Returning to the scratch buffer
 * each time would copy the next bytes into fresh memory and keep the garbage collector of Node.js 24 and later busy.
 */
const QUIET_TURNS = 4;

export class CarrierReader implements StaticReader {
  readonly socket: net.Socket;
  readonly readPath: ReadPath;
  readonly #owner: Guarded;
  readonly #kind: 'plain' | 'tls';
  #onBytes: OnBytes | null = null;
  #early: Buffer[] = [];
  #block: ReadBlock | null = null;
  /** Bytes [start, fill) of the read block were received from the carrier but not delivered yet. */
  #start = 0;
  #fill = 0;
  /**
   * True while unknown code holds a reference into the block. The block is replaced before the next write, as with pins, and is not reused.
   */
  #held = false;
  #scheduled = false;
  #wantsBlock = false;
  #quietTurns = 0;
  readonly #turn = new TickReadBudget();
  #finished = false;

  constructor(socket: net.Socket, kind: 'plain' | 'tls', head: Buffer | undefined, owner: Guarded) {
    this.#owner = owner;
    this.#kind = kind;
    if (head !== undefined && head.length > 0) this.#early.push(head);
    this.socket = socket;
    this.readPath = readStatically(socket, this);
    if (this.readPath === 'static') readDirectly(socket, this);
  }

  start(onBytes: OnBytes): void {
    this.#onBytes = onBytes;
    const early = this.#early;
    this.#early = [];
    for (const chunk of early) this.#hand(chunk, 0, chunk.length, false);
    if (!this.#finished) this.socket.resume();
  }

  nextView(): Buffer | null {
    if (this.#block === null) {
      if (this.#wantsBlock && !this.#finished) this.#block = readBuffers.borrow();
      this.#wantsBlock = false;
      return this.#block === null ? SCRATCH.view : this.#viewOf(this.#block);
    }
    if (this.#fill === 0) {
      if (this.#wantsBlock) return this.#viewOf(this.#block);
      this.#giveBack();
      return SCRATCH.view;
    }
    return this.#block.view.subarray(this.#fill);
  }

  #viewOf(block: ReadBlock): Buffer {
    return this.#turn.isShared ? block.shortView : block.view;
  }

  onRead(n: number): boolean {
    try {
      return this.#take(n);
    } catch (error) {
      this.#owner.abandon(error, 'carrier.data');
      return false;
    }
  }

  #take(n: number): boolean {
    if (this.#block === null) {
      this.#hand(SCRATCH.view, 0, n, false);
      this.#wantsBlock = n >= (this.#kind === 'tls' ? TLS_RECORD_BYTES : SCRATCH.view.length);
      return true;
    }
    tickFlush.flushNow();
    // A single small record with no other bytes pending: the burst has ended, and the block can be returned.
    const quiet = this.#start === this.#fill && n < TLS_RECORD_BYTES;
    this.#fill += n;
    if (quiet || this.#kind === 'plain' || this.#block.view.length - this.#fill < TLS_RECORD_BYTES) this.#handOnAll();
    else this.#handOnLater();
    // Uses the real clock, because the duration of a turn matters and the session's clock may be simulated.
    return this.#turn.goesOn(n, performance.now()) || this.#giveWay();
  }

  /** Pauses until the next event loop turn, as in SocketDuplex, so that a busy carrier does not block other connections. */
  #giveWay(): boolean {
    setImmediate(this.#goOn);
    return false;
  }

  readonly #goOn = (): void => {
    if (!this.#finished) this.socket.resume();
  };

  /** Ordinary reads: the chunk has no other owner, and is small enough for a slow sink to keep whole. */
  onChunk(chunk: Buffer): boolean {
    if (this.#onBytes === null) {
      this.#early.push(chunk);
      return false;
    }
    try {
      this.#hand(chunk, 0, chunk.length, true);
    } catch (error) {
      this.#owner.abandon(error, 'carrier.data');
      return false;
    }
    return true;
  }

  /** Stops reading from the carrier: delivers pending bytes, then returns the borrowed read block. */
  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    if (this.#block === null) return;
    this.#handOn();
    // The block is not reused: finish() can be called within a delivery of the block, before it is known which reader keeps a part.
    this.#held = true;
    this.#giveBack();
  }

  readonly #run = (): void => {
    this.#scheduled = false;
    if (this.#block === null) return;
    try {
      this.#handOn();
    } catch (error) {
      this.#owner.abandon(error, 'carrier.data');
    }
  };

  #handOnLater(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#run);
  }

  #handOn(): number {
    const block = this.#block;
    const from = this.#start;
    const to = this.#fill;
    if (block === null || from === to) return 0;
    this.#start = to;
    const before = readBuffers.handing;
    readBuffers.handing = block;
    try {
      if (this.#hand(block.view, from, to, true)) this.#held = true;
    } finally {
      readBuffers.handing = before;
    }
    return to - from;
  }

  /**
   * Delivers pending bytes and restarts at the front of the block, or of a new block if the old block is held. Only within a read callback.
   */
  #handOnAll(): void {
    const handed = this.#handOn();
    this.#quietTurns = handed < BULK_AT_LEAST_BYTES ? this.#quietTurns + 1 : 0;
    this.#wantsBlock = this.#quietTurns < QUIET_TURNS;
    this.#start = 0;
    this.#fill = 0;
    if (this.#block === null || (!this.#held && this.#block.pins === 0)) return;
    readBuffers.giveBack(this.#block, !this.#held);
    this.#held = false;
    this.#block = this.#wantsBlock && !this.#finished ? readBuffers.borrow() : null;
  }

  #giveBack(): void {
    if (this.#block !== null) readBuffers.giveBack(this.#block, !this.#held);
    this.#block = null;
    this.#held = false;
    this.#start = 0;
    this.#fill = 0;
  }

  #hand(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    return this.#onBytes?.(bytes, start, end, borrowed) ?? false;
  }
}
