// Writes to a sealed carrier. Small frames of an event loop turn become one record. Large payloads are encrypted in place behind the frames
// collected before, so no memory is in use after a call. At most one write is pending; later frames are collected.
import { type ByteDuplex, type Guarded, HEAD_ROOM_BYTES } from '@tunnel/mux';
import { FRAME, type FrameType, WIRE_LIMITS, writeFrameHeader } from '@tunnel/protocol';
import { RECORD_OVERHEAD_BYTES, RECORD_PLAIN_MAX_BYTES, type RecordSealer } from './record-cipher.ts';

/** Size of a sealed carrier's write queue at which streams stop sending DATA. */
export const PEER_SEND_QUEUE_BYTES = 512 * 1024;
/** Queue size at which the carrier is closed, because the peer does not read and small frames pile up. */
const PEER_SEND_QUEUE_MAX_BYTES = 8 * 1024 * 1024;

/** Kind of a sealed record's content: its first byte. */
export const RECORD_KIND = { FRAMES: 0, MESSAGE: 1 } as const;

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
/** Payload size from which a payload is encrypted in place instead of being copied into a batch. */
const IN_PLACE_FROM_BYTES = 16 * 1024;
/** Collected frames up to this size share the first record of a large payload, and are copied for it. */
const SHARED_MAX_BYTES = 4 * 1024;
/** Block for the largest DATA frame of the relay, with room for its header. A larger block would cost an additional frame and write. */
const SEALED_BLOCK_BYTES = HEAD_ROOM_BYTES + WIRE_LIMITS.FRAME_DATA_MAX_BYTES;
/** Plain size of bulk records: the largest allowed by Noise such that a whole number of records fills the block. */
const BULK_RECORDS = Math.ceil(WIRE_LIMITS.FRAME_DATA_MAX_BYTES / (RECORD_PLAIN_MAX_BYTES + RECORD_OVERHEAD_BYTES));
const BULK_PLAIN_BYTES = Math.floor(WIRE_LIMITS.FRAME_DATA_MAX_BYTES / BULK_RECORDS) - RECORD_OVERHEAD_BYTES;
const KEPT_FREE_BLOCKS = 8;

/** Free blocks, shared by all carriers. A carrier holds blocks only while sending. */
const freePlain: Buffer[] = [];
const freeSealed: Buffer[] = [];

interface Batch {
  readonly block: Buffer;
  fill: number;
}

export interface SealedWriterEvents extends Guarded {
  onReady(): void;
  /** Called when PEER_SEND_QUEUE_MAX_BYTES is exceeded: the peer does not read, and frames that cannot wait pile up. */
  onStuck(queuedBytes: number): void;
}

export class SealedWriter {
  readonly #duplex: ByteDuplex;
  readonly #sealer: RecordSealer;
  readonly #events: SealedWriterEvents;
  /** Frames waiting to be sealed. Each batch becomes a record; its first byte is the record kind. */
  #batches: Batch[] = [];
  #gatheredBytes = 0;
  /** Block with sealed records, in use by the duplex until it drains. */
  #sealed: Buffer | null = null;
  #busy = false;
  #scheduled = false;
  #closed = false;
  #endAsked: (() => void) | null = null;
  #someoneWaits = false;
  readonly #header = Buffer.alloc(1 + HEADER);
  bytesSent = 0;

  constructor(duplex: ByteDuplex, sealer: RecordSealer, events: SealedWriterEvents) {
    this.#duplex = duplex;
    this.#sealer = sealer;
    this.#events = events;
  }

  get queuedBytes(): number {
    return this.#gatheredBytes;
  }

  isFull(bytes: number): boolean {
    const crowded = this.#gatheredBytes > PEER_SEND_QUEUE_BYTES;
    const full = crowded || (this.#busy && bytes >= IN_PLACE_FROM_BYTES);
    if (full) this.#someoneWaits = true;
    return full;
  }

  send(frame: Uint8Array, length = frame.length): void {
    this.#gather(frame, 0, length);
  }

  /** Sends a message to the other program in a separate record, in order with the frames. */
  sendMessage(bytes: Buffer): void {
    if (this.#closed) return;
    this.#batches.push({ block: Buffer.concat([Buffer.of(RECORD_KIND.MESSAGE), bytes]), fill: 1 + bytes.length });
    this.#gathered(1 + bytes.length);
  }

  /** Sends bytes[start, end) as a DATA frame. The memory is free after the call. */
  sendData(streamId: number, bytes: Buffer, start: number, end: number): void {
    const length = end - start;
    if (length >= IN_PLACE_FROM_BYTES && !this.#busy) {
      // Frames collected earlier in this event loop turn must be sent before this payload.
      if (!this.#canShare()) this.flush();
      if (!this.#busy) return this.#sendInPlace(streamId, bytes, start, end);
    }
    this.#gatherFrame(FRAME.DATA, streamId, bytes, start, end);
  }

  /** Sends a DATAGRAM frame. Returns false if the datagram was dropped because the duplex is busy and the queue is full. */
  sendDatagram(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (this.#gatheredBytes >= RECORD_PLAIN_MAX_BYTES) this.flush();
    if (this.#gatheredBytes > PEER_SEND_QUEUE_BYTES) return false;
    this.#gatherFrame(FRAME.DATAGRAM, streamId, bytes, start, end);
    return true;
  }

  /** Encrypts and sends collected frames. Does nothing while a write is pending, because the end of the write flushes again. */
  flush(): void {
    while (!this.#busy && !this.#closed && this.#batches.length > 0) {
      const target = takeSealed();
      let at = HEAD_ROOM_BYTES;
      for (let next = this.#batches[0]; next !== undefined; next = this.#batches[0]) {
        if (at + next.fill + RECORD_OVERHEAD_BYTES > target.length) break;
        this.#batches.shift();
        this.#gatheredBytes -= next.fill;
        at = this.#sealer.seal(NOTHING, next.block, 0, next.fill, target, at);
        giveBack(freePlain, next.block, RECORD_PLAIN_MAX_BYTES);
      }
      this.#write(target, at);
    }
    if (this.#endAsked !== null && !this.#busy && !this.#closed) this.#duplex.end(this.#endAsked);
  }

  /** Closes the sending direction of the carrier after all collected frames were sent. */
  end(onFlushed: () => void): void {
    this.#endAsked ??= onFlushed;
    this.flush();
  }

  /** Called by the carrier's reader when the duplex has flushed the last write. */
  onDrain(): void {
    if (this.#closed) return;
    this.#settle();
    // Waiting bulk data goes before small frames that came later. Otherwise a flood of small frames would starve bulk streams.
    if (this.#someoneWaits) {
      this.#someoneWaits = false;
      this.#events.onReady();
    }
    if (!this.#scheduled) this.flush();
  }

  close(): void {
    this.#closed = true;
    // The block is not reused, because the duplex may still read from it.
    this.#sealed = null;
    this.#batches = [];
    this.#gatheredBytes = 0;
  }

  /** Returns true if the collected frames fit in front of a payload in the same record. */
  #canShare(): boolean {
    const [first] = this.#batches;
    if (first === undefined) return true;
    return this.#batches.length === 1 && first.fill <= SHARED_MAX_BYTES && first.block[0] === RECORD_KIND.FRAMES;
  }

  #sendInPlace(streamId: number, bytes: Buffer, start: number, end: number): void {
    const target = takeSealed();
    const shared = this.#batches.pop();
    if (shared !== undefined) this.#gatheredBytes -= shared.fill;
    const front = shared ?? { block: this.#header, fill: 1 };
    front.block[0] = RECORD_KIND.FRAMES;
    writeFrameHeader(front.block, front.fill, FRAME.DATA, end - start, streamId);
    let prefix = front.block.subarray(0, front.fill + HEADER);
    let out = HEAD_ROOM_BYTES;
    let at = start;
    while (at < end) {
      const room = Math.min(BULK_PLAIN_BYTES, target.length - out - RECORD_OVERHEAD_BYTES) - prefix.length;
      if (room <= 0) break;
      const stop = Math.min(end, at + room);
      out = this.#sealer.seal(prefix, bytes, at, stop, target, out);
      at = stop;
      prefix = KIND_OF_FRAMES;
    }
    if (shared !== undefined) giveBack(freePlain, shared.block, RECORD_PLAIN_MAX_BYTES);
    // A few bytes remain of a frame larger than the block. They go in front of the next frame, or are sent at the end of the turn.
    if (at < end) this.#gather(bytes, at, end);
    this.#write(target, out);
  }

  #write(target: Buffer, end: number): void {
    this.bytesSent += end - HEAD_ROOM_BYTES;
    this.#sealed = target;
    this.#busy = true;
    if (this.#duplex.write(target, HEAD_ROOM_BYTES, end, true)) this.#settle();
  }

  #settle(): void {
    this.#busy = false;
    if (this.#sealed !== null) giveBack(freeSealed, this.#sealed, SEALED_BLOCK_BYTES);
    this.#sealed = null;
  }

  readonly #onTurn = (): void => {
    this.#scheduled = false;
    try {
      this.flush();
    } catch (error) {
      this.#events.abandon(error, 'peer.written');
    }
  };

  #gatherFrame(type: FrameType, streamId: number, bytes: Buffer, start: number, end: number): void {
    writeFrameHeader(this.#header, 1, type, end - start, streamId);
    this.#gather(this.#header, 1, 1 + HEADER);
    this.#gather(bytes, start, end);
  }

  /** Copies into the current record. A frame can be split between two records, because records are sent in order. */
  #gather(bytes: Uint8Array, start: number, end: number): void {
    if (this.#closed) return;
    let at = start;
    while (at < end) {
      const tail = this.#tail();
      const taken = Math.min(end - at, RECORD_PLAIN_MAX_BYTES - tail.fill);
      tail.block.set(bytes.subarray(at, at + taken), tail.fill);
      tail.fill += taken;
      at += taken;
    }
    this.#gathered(end - start);
  }

  #gathered(bytes: number): void {
    this.#gatheredBytes += bytes;
    if (this.#gatheredBytes > PEER_SEND_QUEUE_MAX_BYTES) this.#events.onStuck(this.#gatheredBytes);
    else if (!this.#scheduled && !this.#busy) {
      this.#scheduled = true;
      setImmediate(this.#onTurn);
    }
  }

  #tail(): Batch {
    const last = this.#batches.at(-1);
    // A batch that holds a message is complete; frames go into a new batch.
    if (last !== undefined && last.fill < RECORD_PLAIN_MAX_BYTES && last.block[0] === RECORD_KIND.FRAMES) return last;
    const batch = { block: freePlain.pop() ?? Buffer.allocUnsafeSlow(RECORD_PLAIN_MAX_BYTES), fill: 1 };
    batch.block[0] = RECORD_KIND.FRAMES;
    this.#batches.push(batch);
    this.#gatheredBytes += 1;
    return batch;
  }
}

const NOTHING = Buffer.alloc(0);
const KIND_OF_FRAMES = Buffer.of(RECORD_KIND.FRAMES);

const takeSealed = (): Buffer => freeSealed.pop() ?? Buffer.allocUnsafeSlow(SEALED_BLOCK_BYTES);

const giveBack = (free: Buffer[], block: Buffer, size: number): void => {
  if (block.length === size && free.length < KEPT_FREE_BLOCKS) free.push(block);
};
