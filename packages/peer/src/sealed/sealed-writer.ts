// The writing half of a sealed carrier. Small frames of one turn of the loop become one record; large payloads are sealed where they lie,
// behind what was gathered before them, so no memory is ever in use after a call. At most one write is under way; what comes meanwhile is
// gathered.
import { type ByteDuplex, type Guarded, HEAD_ROOM_BYTES } from '@tunnel/mux';
import { FRAME, type FrameType, WIRE_LIMITS, writeFrameHeader } from '@tunnel/protocol';
import { RECORD_OVERHEAD_BYTES, RECORD_PLAIN_MAX_BYTES, type RecordSealer } from './record-cipher.ts';

/** from here on streams wait before they send more DATA */
export const PEER_SEND_QUEUE_BYTES = 512 * 1024;
/** small frames of a peer that does not read; over it the carrier is closed */
const PEER_SEND_QUEUE_MAX_BYTES = 8 * 1024 * 1024;

/** The first byte inside a record. */
export const RECORD_KIND = { FRAMES: 0, MESSAGE: 1 } as const;

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;
/** From this size on a payload is not gathered. */
const IN_PLACE_FROM_BYTES = 16 * 1024;
/** Gathered frames of no more than this share the first record of a large payload; they are copied for it. */
const SHARED_MAX_BYTES = 4 * 1024;
/** As much as one DATA frame of the relay can carry, behind room for its header: one byte more would cost a frame and a write. */
const SEALED_BLOCK_BYTES = HEAD_ROOM_BYTES + WIRE_LIMITS.FRAME_DATA_MAX_BYTES;
/** Records of bulk: as large as Noise allows where a whole number of them fills the block. */
const BULK_RECORDS = Math.ceil(WIRE_LIMITS.FRAME_DATA_MAX_BYTES / (RECORD_PLAIN_MAX_BYTES + RECORD_OVERHEAD_BYTES));
const BULK_PLAIN_BYTES = Math.floor(WIRE_LIMITS.FRAME_DATA_MAX_BYTES / BULK_RECORDS) - RECORD_OVERHEAD_BYTES;
const KEPT_FREE_BLOCKS = 8;

/** Of the whole process: a carrier has blocks only while it sends. */
const freePlain: Buffer[] = [];
const freeSealed: Buffer[] = [];

interface Batch {
  readonly block: Buffer;
  fill: number;
}

export interface SealedWriterEvents extends Guarded {
  onReady(): void;
  /** The hard bound is reached: the peer reads nothing, and frames that cannot wait pile up. */
  onStuck(queuedBytes: number): void;
}

export class SealedWriter {
  readonly #duplex: ByteDuplex;
  readonly #sealer: RecordSealer;
  readonly #events: SealedWriterEvents;
  /** Each becomes a record; the first byte of each is its kind. */
  #batches: Batch[] = [];
  #gatheredBytes = 0;
  /** In use by the duplex until it drains. */
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

  /** A word to the other program, in a record of its own and in order with the frames. */
  sendMessage(bytes: Buffer): void {
    if (this.#closed) return;
    this.#batches.push({ block: Buffer.concat([Buffer.of(RECORD_KIND.MESSAGE), bytes]), fill: 1 + bytes.length });
    this.#gathered(1 + bytes.length);
  }

  /** One DATA frame of bytes[start, end). The memory is free again when it returns. */
  sendData(streamId: number, bytes: Buffer, start: number, end: number): void {
    const length = end - start;
    if (length >= IN_PLACE_FROM_BYTES && !this.#busy) {
      // Frames gathered in this turn came first and leave first.
      if (!this.#canShare()) this.flush();
      if (!this.#busy) return this.#sendInPlace(streamId, bytes, start, end);
    }
    this.#gatherFrame(FRAME.DATA, streamId, bytes, start, end);
  }

  /** One DATAGRAM frame. What a busy duplex leaves behind is no queue for datagrams: false, it is dropped. */
  sendDatagram(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (this.#gatheredBytes >= RECORD_PLAIN_MAX_BYTES) this.flush();
    if (this.#gatheredBytes > PEER_SEND_QUEUE_BYTES) return false;
    this.#gatherFrame(FRAME.DATAGRAM, streamId, bytes, start, end);
    return true;
  }

  /** Seals and sends what was gathered, unless a write is under way: its end does it then. */
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

  /** All that was gathered leaves before the end does. */
  end(onFlushed: () => void): void {
    this.#endAsked ??= onFlushed;
    this.flush();
  }

  /** From the reader: the duplex has taken what was written. */
  onDrain(): void {
    if (this.#closed) return;
    this.#settle();
    // Waiting bulk goes before small frames that came later, or a flood of them would starve it.
    if (this.#someoneWaits) {
      this.#someoneWaits = false;
      this.#events.onReady();
    }
    if (!this.#scheduled) this.flush();
  }

  close(): void {
    this.#closed = true;
    // Never back to the pool: the duplex may still read from it.
    this.#sealed = null;
    this.#batches = [];
    this.#gatheredBytes = 0;
  }

  /** Whether what is gathered fits in front of a payload, in the same record. */
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
    // The rest of a frame that is larger than the block, a few bytes: in front of the next one, or by itself at the end of the turn.
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

  /** A frame may be cut between two records: they leave in order. */
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
    // A message is whole as it is.
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
