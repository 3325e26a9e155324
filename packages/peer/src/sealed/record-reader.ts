// Splits a byte stream into records by their length prefix. Buffers at most one record, and nothing between records.
import { LENGTH_BYTES } from './record-cipher.ts';

export interface RecordHandler {
  /**
   * Called with a whole record, bytes[start, end), without its length. The memory is valid only during the call. Returns false to stop
   * reading.
   */
  onRecord(bytes: Buffer, start: number, end: number): boolean;
  /** Called for a length of zero, which means that the other side could not decrypt our record. */
  onRefusal(): void;
  /** Called if a received record is longer than `maxBytes`. */
  onOversize(length: number): void;
}

/** Blocks for incomplete records, shared by all connections. A quiet connection holds no block. */
const BLOCK_BYTES = 64 * 1024;
const KEPT_FREE_BLOCKS = 8;
const freeBlocks: Buffer[] = [];

export class RecordReader {
  /** Maximum length of a received record at the moment. Smaller during the handshake. */
  maxBytes: number;
  readonly #handler: RecordHandler;
  #lengthByte = -1;
  /** Length of the record being received; -1 between records. */
  #length = -1;
  #block: Buffer | null = null;
  #fill = 0;

  constructor(handler: RecordHandler, maxBytes: number) {
    this.#handler = handler;
    this.maxBytes = maxBytes;
  }

  push(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end) {
      if (this.#length < 0) {
        at = this.#readLength(bytes, at, end);
        if (this.#length < 0) continue;
        if (!this.#isAllowed(this.#length)) return;
      }
      const next = this.#take(bytes, at, end);
      if (next < 0) return;
      at = next;
    }
  }

  /** Stops the reader and returns the block of an incomplete record. */
  close(): void {
    if (this.#block !== null && freeBlocks.length < KEPT_FREE_BLOCKS) freeBlocks.push(this.#block);
    this.#block = null;
  }

  #readLength(bytes: Buffer, at: number, end: number): number {
    if (this.#lengthByte < 0 && end - at >= LENGTH_BYTES) {
      this.#length = bytes.readUInt16BE(at);
      return at + LENGTH_BYTES;
    }
    const byte = bytes[at] as number;
    if (this.#lengthByte < 0) this.#lengthByte = byte;
    else {
      this.#length = this.#lengthByte * 256 + byte;
      this.#lengthByte = -1;
    }
    return at + 1;
  }

  #isAllowed(length: number): boolean {
    if (length > 0 && length <= this.maxBytes) return true;
    if (length === 0) this.#handler.onRefusal();
    else this.#handler.onOversize(length);
    return false;
  }

  /** Takes bytes of the current record. Returns the position behind the bytes taken, or -1 to stop reading. */
  #take(bytes: Buffer, at: number, end: number): number {
    const missing = this.#length - this.#fill;
    if (this.#block === null && end - at >= missing) {
      this.#length = -1;
      return this.#handler.onRecord(bytes, at, at + missing) ? at + missing : -1;
    }
    this.#block ??= freeBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
    const taken = Math.min(missing, end - at);
    bytes.copy(this.#block, this.#fill, at, at + taken);
    this.#fill += taken;
    if (taken < missing) return at + taken;
    return this.#handGathered() ? at + taken : -1;
  }

  #handGathered(): boolean {
    const block = this.#block as Buffer;
    const length = this.#length;
    this.#block = null;
    this.#length = -1;
    this.#fill = 0;
    const goOn = this.#handler.onRecord(block, 0, length);
    if (freeBlocks.length < KEPT_FREE_BLOCKS) freeBlocks.push(block);
    return goOn;
  }
}
