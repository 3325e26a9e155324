// The writing half of a carrier. Small frames of one turn of the loop are copied into one block and leave in one write;
// large payloads leave in place, behind a header in their head room. At most one write is under way that the kernel
// (or TLS, which never takes bytes at once) has not finished; what comes meanwhile is gathered for the next one.
import type * as net from 'node:net';
import { FRAME, type FrameType, WIRE_LIMITS, writeFrameHeader } from '@tunnel/protocol';
import type { Guarded } from '../loop/guard.ts';
import { type TurnEndListener, turnEnd } from '../loop/turn-end.ts';

/** small frames of one turn of the event loop leave in one write */
const CARRIER_BATCH_BYTES = 64 * 1024;
/** from here on streams wait before they send more DATA */
const CARRIER_SEND_QUEUE_BYTES = 512 * 1024;
/** small frames of a peer that does not read; over it the carrier is closed */
const CARRIER_SEND_QUEUE_MAX_BYTES = 8 * 1024 * 1024;

/** From this size on a copy costs more than a write of its own. */
const IN_PLACE_FROM_BYTES = 16 * 1024;
const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
const KEPT_FREE_BLOCKS = 16;
/** Up to this size a loop is quicker than a view and a call into the runtime. */
const LOOP_UP_TO_BYTES = 96;

/** Blocks of idle carriers wait here for whoever sends next. */
const freeBlocks: Buffer[] = [];
const takeBlock = (): Buffer => freeBlocks.pop() ?? Buffer.allocUnsafeSlow(CARRIER_BATCH_BYTES);
const giveBlock = (block: Buffer): void => {
  if (freeBlocks.length < KEPT_FREE_BLOCKS) freeBlocks.push(block);
};

const copy = (from: Uint8Array, start: number, to: Uint8Array, at: number, length: number): void => {
  if (length > LOOP_UP_TO_BYTES) to.set(from.subarray(start, start + length), at);
  else for (let i = 0; i < length; i += 1) to[at + i] = from[start + i] as number;
};

interface Batch {
  readonly block: Buffer;
  fill: number;
}

export interface WriterEvents extends Guarded {
  onReady(): void;
  /** The hard bound is reached: the peer reads nothing, and frames that cannot wait pile up. */
  onStuck(queuedBytes: number): void;
}

export class CarrierWriter implements TurnEndListener {
  readonly #socket: net.Socket;
  readonly #events: WriterEvents;
  #batches: Batch[] = [];
  #gatheredBytes = 0;
  #writing: Batch | null = null;
  #busy = false;
  #scheduled = false;
  #ending = false;
  #closed = false;
  #someoneWaits = false;
  bytesSent = 0;

  constructor(socket: net.Socket, events: WriterEvents) {
    this.#socket = socket;
    this.#events = events;
  }

  get queuedBytes(): number {
    return this.#gatheredBytes + this.#socket.writableLength;
  }

  /** Whether a DATA frame has to wait; the caller is then told by onReady. Frames without data never wait. */
  isFull(bytes: number): boolean {
    const crowded = this.#gatheredBytes > CARRIER_SEND_QUEUE_BYTES;
    const full = crowded || (this.#busy && bytes >= IN_PLACE_FROM_BYTES);
    if (full) this.#someoneWaits = true;
    return full;
  }

  send(frame: Uint8Array, length = frame.length): void {
    this.#gather(frame, 0, length);
  }

  /**
   * One DATA frame of bytes[start, end), which is not longer than a frame may be. true: the memory is free again.
   * false, only when borrowed: it is in use until onReady; the HEAD_ROOM_BYTES in front of `start` are written to.
   */
  sendData(streamId: number, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const length = end - start;
    // Memory without room in front of it is copied, however large it is.
    if (!borrowed || start < HEADER || length < IN_PLACE_FROM_BYTES || this.#busy) {
      this.#gatherFrame(FRAME.DATA, streamId, bytes, start, end);
      return true;
    }
    // Frames gathered in this turn came first and leave first.
    this.flush();
    if (this.#busy) {
      this.#gatherFrame(FRAME.DATA, streamId, bytes, start, end);
      return true;
    }
    writeFrameHeader(bytes, start - HEADER, FRAME.DATA, length, streamId);
    this.#write(bytes.subarray(start - HEADER, end));
    if (this.#busy) this.#someoneWaits = true;
    return !this.#busy;
  }

  /**
   * One DATAGRAM frame. A turn that brings many does not wait for its end; what a busy socket leaves behind is no queue for datagrams: false,
   * it is dropped.
   */
  sendDatagram(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (this.#gatheredBytes >= CARRIER_BATCH_BYTES) this.flush();
    if (this.#gatheredBytes > CARRIER_SEND_QUEUE_BYTES) return false;
    this.#gatherFrame(FRAME.DATAGRAM, streamId, bytes, start, end);
    return true;
  }

  /** Sends what was gathered, unless a write is under way: its end does it then. */
  flush(): void {
    while (!this.#busy && this.#batches.length > 0) {
      const batch = this.#batches.shift() as Batch;
      this.#gatheredBytes -= batch.fill;
      this.#writing = batch;
      this.#write(batch.block.subarray(0, batch.fill));
    }
    if (this.#ending && this.#batches.length === 0) this.#socket.end();
  }

  /** The end of the socket leaves behind all that was gathered, also where a write is under way now. Nothing may be sent afterwards. */
  end(): void {
    this.#ending = true;
    this.flush();
  }

  close(): void {
    this.#closed = true;
    // Never back to the pool: the kernel may still read from it.
    this.#writing = null;
    this.#batches = [];
    this.#gatheredBytes = 0;
  }

  #write(bytes: Buffer): void {
    if (this.#closed) return;
    this.bytesSent += bytes.length;
    this.#busy = true;
    this.#socket.write(bytes, this.#onWritten);
    // A plain socket whose kernel took all is free at once; the callback that still comes then finds nothing to do.
    if (this.#socket.writableLength === 0) this.#settle();
  }

  #settle(): void {
    this.#busy = false;
    if (this.#writing !== null) giveBlock(this.#writing.block);
    this.#writing = null;
  }

  readonly #onWritten = (): void => {
    if (this.#closed || this.#socket.writableLength > 0) return;
    try {
      this.#writeOn();
    } catch (error) {
      this.#events.abandon(error, 'carrier.written');
    }
  };

  #writeOn(): void {
    if (this.#busy) this.#settle();
    // Waiting bulk goes before small frames that came later, or a flood of them would starve it.
    if (this.#someoneWaits) {
      this.#someoneWaits = false;
      this.#events.onReady();
    }
    if (!this.#scheduled) this.flush();
  }

  onTurnEnd(): void {
    this.#scheduled = false;
    try {
      this.flush();
    } catch (error) {
      this.#events.abandon(error, 'carrier.written');
    }
  }

  #gatherFrame(type: FrameType, streamId: number, bytes: Buffer, start: number, end: number): void {
    const tail = this.#tail(HEADER);
    writeFrameHeader(tail.block, tail.fill, type, end - start, streamId);
    tail.fill += HEADER;
    this.#gatheredBytes += HEADER;
    this.#gather(bytes, start, end);
  }

  /** A frame may be cut between two blocks: they leave in order. */
  #gather(bytes: Uint8Array, start: number, end: number): void {
    let at = start;
    while (at < end) {
      const tail = this.#tail(1);
      const taken = Math.min(end - at, tail.block.length - tail.fill);
      copy(bytes, at, tail.block, tail.fill, taken);
      tail.fill += taken;
      at += taken;
    }
    this.#gatheredBytes += end - start;
    if (this.#gatheredBytes > CARRIER_SEND_QUEUE_MAX_BYTES) this.#events.onStuck(this.#gatheredBytes);
    else if (!this.#scheduled && !this.#busy) {
      this.#scheduled = true;
      turnEnd.tell(this);
    }
  }

  #tail(room: number): Batch {
    const last = this.#batches.at(-1);
    if (last !== undefined && last.block.length - last.fill >= room) return last;
    const batch = { block: takeBlock(), fill: 0 };
    this.#batches.push(batch);
    return batch;
  }
}
