// The records of a sealed connection: length (2 bytes), AES-256-GCM of at most 65,519 bytes, tag. One key a direction, and a counter
// that both sides keep by themselves, so that a record which is left out, repeated, moved or altered does not open.
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import { NoiseFailure, TAG_BYTES } from './noise.ts';

/** what Noise allows a message to be; the length in front of it has two bytes */
export const PEER_RECORD_MAX_BYTES = 65_535;
/** records under one AES-GCM key (NIST SP 800-38D, section 8.3) */
const PEER_RECORDS_PER_KEY_MAX = 2 ** 32;

export const LENGTH_BYTES = 2;
/** What a record adds to what it holds. */
export const RECORD_OVERHEAD_BYTES = LENGTH_BYTES + TAG_BYTES;
export const RECORD_PLAIN_MAX_BYTES = PEER_RECORD_MAX_BYTES - TAG_BYTES;

class RecordCounter {
  readonly nonce = Buffer.alloc(12);
  #count = 0;

  /** The nonce of the next record. It is never given twice: over its bound there is none. */
  next(): Buffer {
    if (this.#count >= PEER_RECORDS_PER_KEY_MAX) throw new NoiseFailure('the key has reached the limit of records');
    this.nonce.writeUInt32BE(Math.floor(this.#count / 2 ** 32), 4);
    this.nonce.writeUInt32BE(this.#count >>> 0, 8);
    this.#count += 1;
    return this.nonce;
  }
}

export class RecordSealer {
  readonly #key: KeyObject;
  readonly #counter = new RecordCounter();

  constructor(key: Buffer) {
    this.#key = createSecretKey(key);
  }

  /** Writes the whole record of `prefix` and bytes[start, end) to `target` at `at`, and says where it ends. */
  seal(prefix: Buffer, bytes: Uint8Array, start: number, end: number, target: Buffer, at: number): number {
    const length = prefix.length + end - start;
    if (length > RECORD_PLAIN_MAX_BYTES) throw new RangeError(`${length} bytes do not fit into a record`);
    const cipher = createCipheriv('aes-256-gcm', this.#key, this.#counter.next());
    target.writeUInt16BE(length + TAG_BYTES, at);
    if (prefix.length > 0) target.set(cipher.update(prefix), at + LENGTH_BYTES);
    target.set(cipher.update(bytes.subarray(start, end)), at + LENGTH_BYTES + prefix.length);
    // GCM has no last block: this gives no bytes, and makes the tag.
    cipher.final();
    target.set(cipher.getAuthTag(), at + LENGTH_BYTES + length);
    return at + RECORD_OVERHEAD_BYTES + length;
  }
}

export class RecordOpener {
  readonly #key: KeyObject;
  readonly #counter = new RecordCounter();

  constructor(key: Buffer) {
    this.#key = createSecretKey(key);
  }

  /** The plain bytes of a record without its length, in memory of their own. Nothing is handed out before the tag was right. */
  open(bytes: Buffer, start: number, end: number): Buffer {
    const tagAt = end - TAG_BYTES;
    if (tagAt < start) throw new NoiseFailure('the record is too short');
    const decipher = createDecipheriv('aes-256-gcm', this.#key, this.#counter.next());
    decipher.setAuthTag(bytes.subarray(tagAt, end));
    const plain = decipher.update(bytes.subarray(start, tagAt));
    try {
      decipher.final();
    } catch {
      throw new NoiseFailure('the record cannot be decrypted');
    }
    return plain;
  }
}
