// Cuts a byte stream into records by the length in front of each, whatever pieces it comes in. It holds at most one record, and nothing
// between two.
import { LENGTH_BYTES } from './record-cipher.ts';

export interface RecordHandler {
  /** bytes[start, end) is one whole record without its length; the memory is borrowed for the call. false: read no further. */
  onRecord(bytes: Buffer, start: number, end: number): boolean;
  /** A length of zero, which no record has: the other side could not open ours. */
  onRefusal(): void;
  /** A length that the moment does not allow. */
  onOversize(length: number): void;
}

/** Whole records of all connections are gathered in these; a quiet connection holds none. */
const BLOCK_BYTES = 64 * 1024;
const KEPT_FREE_BLOCKS = 8;
const freeBlocks: Buffer[] = [];

export class RecordReader {
  /** What a record may be now: a handshake has small ones. */
  maxBytes: number;
  readonly #handler: RecordHandler;
  #lengthByte = -1;
  /** Of the record that is being gathered; -1 between two. */
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

  /** Gives back what it holds. */
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

  /** Where the next record begins, or the end of what there is; -1: read no further. */
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
