// Writes to a carrier's socket. Small frames of an event loop turn are copied into a block and sent with one write. Large payloads are sent
// in place, with the frame header in their head room. At most one write is pending in the kernel (or in TLS, which never completes a write
// at once); later frames are collected for the next write.
import type * as net from 'node:net';
import { FRAME, type FrameType, WIRE_LIMITS, writeFrameHeader } from '@tunnel/protocol';
import type { Guarded } from '../loop/guard.ts';
import { type TickFlushListener, tickFlush } from '../loop/tick-flush.ts';
import { type DirectWrites, directWrites } from '../native/direct-writes.ts';

/** Block size. Small frames of an event loop turn are sent in one write. */
const CARRIER_BATCH_BYTES = 64 * 1024;
/**
 * Size of a turn's first block, unless the carrier filled more in its last turn. Most carriers of an edge with many clients send a few
 * frames, such as pings, and often in the same turn.
 */
const SMALL_BATCH_BYTES = 4 * 1024;
/** Numbers of free blocks that are kept: 1 MiB of each size. */
const SMALL_KEPT = 256;
const LARGE_KEPT = 16;
/** Size of a carrier's write queue at which streams stop sending DATA. */
const CARRIER_SEND_QUEUE_BYTES = 512 * 1024;
/** Queue size at which the carrier is closed, because the peer does not read and small frames pile up. */
const CARRIER_SEND_QUEUE_MAX_BYTES = 8 * 1024 * 1024;

/** Payload size from which a separate write to the carrier is cheaper than a copy into the batch. */
const IN_PLACE_FROM_BYTES = 16 * 1024;
const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
/** Copies up to this size are faster in a loop than with subarray() and set(). */
const LOOP_UP_TO_BYTES = 96;

/** Free blocks, kept for the next carriers that send. */
class FreeBlocks {
  readonly #small: Buffer[] = [];
  readonly #large: Buffer[] = [];

  takeSmall(): Buffer {
    return this.#small.pop() ?? Buffer.allocUnsafeSlow(SMALL_BATCH_BYTES);
  }

  takeLarge(): Buffer {
    return this.#large.pop() ?? Buffer.allocUnsafeSlow(CARRIER_BATCH_BYTES);
  }

  give(block: Buffer): void {
    if (block.length > SMALL_BATCH_BYTES) keepUpTo(LARGE_KEPT, this.#large, block);
    else keepUpTo(SMALL_KEPT, this.#small, block);
  }
}

const keepUpTo = (most: number, blocks: Buffer[], block: Buffer): void => {
  if (blocks.length < most) blocks.push(block);
};

const freeBlocks = new FreeBlocks();

const copy = (from: Uint8Array, start: number, to: Uint8Array, at: number, length: number): void => {
  if (length > LOOP_UP_TO_BYTES) to.set(from.subarray(start, start + length), at);
  else for (let i = 0; i < length; i += 1) to[at + i] = from[start + i] as number;
};

interface Batch {
  block: Buffer;
  fill: number;
}

/** Moves the frames of a batch to a large block. */
const enlarge = (batch: Batch): void => {
  const small = batch.block;
  batch.block = freeBlocks.takeLarge();
  small.copy(batch.block, 0, 0, batch.fill);
  freeBlocks.give(small);
};

export interface WriterEvents extends Guarded {
  onReady(): void;
  /** Called when CARRIER_SEND_QUEUE_MAX_BYTES is exceeded: the peer does not read, and frames that cannot wait pile up. */
  onStuck(queuedBytes: number): void;
}

export class CarrierWriter implements TickFlushListener {
  readonly #socket: net.Socket;
  /** Null if Node's internals are not available, and all writes pass through Node's stream layer. */
  readonly #direct: DirectWrites | null;
  readonly #events: WriterEvents;
  #batches: Batch[] = [];
  #gatheredBytes = 0;
  #writing: Batch | null = null;
  /** True if the last batch did not fit into a small block, so that the next one probably does not either. */
  #outgrewSmall = false;
  #busy = false;
  #scheduled = false;
  #ending = false;
  #closed = false;
  #someoneWaits = false;
  bytesSent = 0;

  constructor(socket: net.Socket, events: WriterEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#direct = directWrites(socket, () => this.#onWritten());
  }

  get queuedBytes(): number {
    return this.#gatheredBytes + this.#pendingBytes;
  }

  /** Bytes passed to the socket that neither the kernel nor TLS has accepted. */
  get #pendingBytes(): number {
    return this.#socket.writableLength + (this.#direct?.pendingBytes ?? 0);
  }

  /** Returns true if a DATA frame of this size has to wait. onReady is then called later. Frames without data never wait. */
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
   * Sends bytes[start, end) as a DATA frame; the caller respects the maximum frame size. Returns true if the memory is free again. Returns
   * false, only for borrowed memory, if the memory is in use until onReady. The HEAD_ROOM_BYTES in front of `start` are overwritten.
   */
  sendData(streamId: number, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const length = end - start;
    // Payloads in memory without head room for a frame header are copied, regardless of their size.
    if (!borrowed || start < HEADER || length < IN_PLACE_FROM_BYTES || this.#busy) {
      this.#gatherFrame(FRAME.DATA, streamId, bytes, start, end);
      return true;
    }
    // Frames collected earlier in this event loop turn must be sent before this payload.
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
   * Sends a DATAGRAM frame. Flushes within the turn if many datagrams arrive. Returns false if the datagram was dropped because the socket
   * is busy and the queue is full.
   */
  sendDatagram(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (this.#gatheredBytes >= CARRIER_BATCH_BYTES) this.flush();
    if (this.#gatheredBytes > CARRIER_SEND_QUEUE_BYTES) return false;
    this.#gatherFrame(FRAME.DATAGRAM, streamId, bytes, start, end);
    return true;
  }

  /** Sends collected frames. Does nothing while a write is pending, because the end of the write flushes again. */
  flush(): void {
    while (!this.#busy && this.#batches.length > 0) {
      const batch = this.#batches.shift() as Batch;
      this.#gatheredBytes -= batch.fill;
      this.#outgrewSmall = batch.fill > SMALL_BATCH_BYTES;
      this.#writing = batch;
      this.#write(batch.block.subarray(0, batch.fill));
    }
    if (this.#ending && !this.#busy && this.#batches.length === 0) this.#socket.end();
  }

  /** Closes the socket after all collected frames were sent, including frames behind a pending write. No frame can be sent afterwards. */
  end(): void {
    this.#ending = true;
    this.flush();
  }

  close(): void {
    this.#closed = true;
    // The block is not reused, because the kernel may still read from it.
    this.#writing = null;
    this.#batches = [];
    this.#gatheredBytes = 0;
  }

  #write(bytes: Buffer): void {
    if (this.#closed) return;
    this.bytesSent += bytes.length;
    this.#busy = true;
    // A plain socket is free at once if the kernel accepted all bytes.
    if (this.#pass(bytes)) this.#settle();
  }

  /** Passes bytes to the socket. Returns true if the kernel accepted all bytes; otherwise #onWritten is called later. */
  #pass(bytes: Buffer): boolean {
    // The response to the upgrade may still be pending in Node's stream layer, and a handle takes only one write at a time.
    if (this.#direct === null || this.#socket.writableLength > 0) {
      this.#socket.write(bytes, this.#onWritten);
      return this.#socket.writableLength === 0;
    }
    const isFree = this.#direct.write(bytes);
    // Node's stream layer always calls back. A direct write does so only if it was pending, and only waiting streams need the call.
    if (isFree && this.#someoneWaits) process.nextTick(this.#onWritten);
    return isFree;
  }

  #settle(): void {
    this.#busy = false;
    if (this.#writing !== null) freeBlocks.give(this.#writing.block);
    this.#writing = null;
  }

  readonly #onWritten = (): void => {
    if (this.#closed || this.#pendingBytes > 0) return;
    try {
      this.#writeOn();
    } catch (error) {
      this.#events.abandon(error, 'carrier.written');
    }
  };

  #writeOn(): void {
    if (this.#busy) this.#settle();
    // Waiting bulk data goes before small frames that came later. Otherwise a flood of small frames would starve bulk streams.
    if (this.#someoneWaits) {
      this.#someoneWaits = false;
      this.#events.onReady();
    }
    if (!this.#scheduled) this.flush();
  }

  onTickFlush(): void {
    this.#scheduled = false;
    try {
      this.flush();
    } catch (error) {
      this.#events.abandon(error, 'carrier.written');
    }
  }

  #gatherFrame(type: FrameType, streamId: number, bytes: Buffer, start: number, end: number): void {
    const tail = this.#tail(HEADER, HEADER + end - start);
    writeFrameHeader(tail.block, tail.fill, type, end - start, streamId);
    tail.fill += HEADER;
    this.#gatheredBytes += HEADER;
    this.#gather(bytes, start, end);
  }

  /** Copies into the current block. A frame can be split between two blocks, because blocks are sent in order. */
  #gather(bytes: Uint8Array, start: number, end: number): void {
    let at = start;
    while (at < end) {
      const tail = this.#tail(1, end - at);
      const taken = Math.min(end - at, tail.block.length - tail.fill);
      copy(bytes, at, tail.block, tail.fill, taken);
      tail.fill += taken;
      at += taken;
    }
    this.#gatheredBytes += end - start;
    if (this.#gatheredBytes > CARRIER_SEND_QUEUE_MAX_BYTES) this.#events.onStuck(this.#gatheredBytes);
    else if (!this.#scheduled && !this.#busy) {
      this.#scheduled = true;
      tickFlush.tell(this);
    }
  }

  /** Returns the last batch, with room for at least `least` of the `wanted` bytes. */
  #tail(least: number, wanted: number): Batch {
    const last = this.#batches.at(-1);
    if (last !== undefined) {
      const room = last.block.length - last.fill;
      if (room >= wanted) return last;
      if (last.block.length === SMALL_BATCH_BYTES) {
        enlarge(last);
        return last;
      }
      if (room >= least) return last;
    }
    const isSmall = last === undefined && !this.#outgrewSmall && wanted <= SMALL_BATCH_BYTES;
    const batch = { block: isSmall ? freeBlocks.takeSmall() : freeBlocks.takeLarge(), fill: 0 };
    this.#batches.push(batch);
    return batch;
  }
}
