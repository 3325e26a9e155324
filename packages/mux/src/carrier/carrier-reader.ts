// The reading half of a carrier. A quiet one reads into the process's scratch buffer and hands the bytes on at once, not borrowed.
// A busy one borrows a block of its own: then bytes are borrowed, and TLS records (16 KB each) are laid one after another and
// handed on once a turn, so that eight of them become one write to the public socket.
import type * as net from 'node:net';
import { type ReadBlock, readBuffers, SCRATCH } from '../bytes/read-buffers.ts';
import type { Guarded } from '../loop/guard.ts';
import { ReadTurn } from '../loop/read-turn.ts';
import { turnEnd } from '../loop/turn-end.ts';
import { readDirectly } from '../native/direct-reads.ts';
import { type ReadPath, readStatically, type StaticReader } from '../native/node-internals.ts';

type OnBytes = (bytes: Buffer, start: number, end: number, borrowed: boolean) => boolean;

/** OpenSSL hands out records of at most this size; the view must have room for a whole one. */
const TLS_RECORD_BYTES = 16 * 1024;
/** A turn that brought less than this is not bulk. */
const BULK_AT_LEAST_BYTES = 16 * 1024;
/**
 * So many of them in a row are the end of it. A carrier of bulk runs dry hundreds of times a second: if it went back to the scratch buffer each time, the
 * next bytes would have to be copied into fresh memory, for which Node.js 24 and later collect garbage all the time.
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
  /** [start, fill) of the block has come and was not handed on. */
  #start = 0;
  #fill = 0;
  /** Someone unknown keeps a reference into the block. As when it is pinned, it is replaced before it would be written again; and it is not used again. */
  #held = false;
  #scheduled = false;
  #wantsBlock = false;
  #quietTurns = 0;
  readonly #turn = new ReadTurn();
  #finished = false;

  constructor(given: net.Socket, kind: 'plain' | 'tls', head: Buffer | undefined, owner: Guarded) {
    this.#owner = owner;
    this.#kind = kind;
    if (head !== undefined && head.length > 0) this.#early.push(head);
    this.socket = given;
    this.readPath = readStatically(given, this);
    if (this.readPath === 'static') readDirectly(given, this);
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
    turnEnd.beforeBulk();
    // A lone small record after all was handed on: the burst is over, and the block can go back.
    const quiet = this.#start === this.#fill && n < TLS_RECORD_BYTES;
    this.#fill += n;
    if (quiet || this.#kind === 'plain' || this.#block.view.length - this.#fill < TLS_RECORD_BYTES) this.#handOnAll();
    else this.#handOnLater();
    // A turn of the loop takes real time, whatever clock the session has.
    return this.#turn.goesOn(n, performance.now()) || this.#giveWay();
  }

  /** As in SocketDuplex: one busy carrier must not keep the loop to itself. */
  #giveWay(): boolean {
    setImmediate(this.#goOn);
    return false;
  }

  readonly #goOn = (): void => {
    if (!this.#finished) this.socket.resume();
  };

  /** Ordinary reads: the chunk is ours alone, and small enough to be kept whole by a slow sink. */
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

  /** The end of the flow: what waits is handed on, then memory goes back. */
  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    if (this.#block === null) return;
    this.#handOn();
    // We may be inside a hand-over of this very block, and cannot know yet who kept a part of it.
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

  /** Hands on, and starts the block (or its successor, when it is held) from the front. Only inside a read callback. */
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
