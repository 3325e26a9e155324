// Records of a sealed connection: length (2 bytes), AES-256-GCM ciphertext of at most 65,519 bytes, tag. Each direction has a key and a
// counter tracked by both sides, so that a record that was dropped, repeated, reordered or altered fails to decrypt.
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import { NoiseFailure, TAG_BYTES } from './noise.ts';

/** Maximum size of an encrypted record (a Noise message); the length prefix has two bytes. */
export const PEER_RECORD_MAX_BYTES = 65_535;
/** Maximum number of records per AES-GCM key (NIST SP 800-38D, section 8.3). */
const PEER_RECORDS_PER_KEY_MAX = 2 ** 32;

export const LENGTH_BYTES = 2;
/** Bytes that a sealed record adds to its content: length prefix and authentication tag. */
export const RECORD_OVERHEAD_BYTES = LENGTH_BYTES + TAG_BYTES;
export const RECORD_PLAIN_MAX_BYTES = PEER_RECORD_MAX_BYTES - TAG_BYTES;

class RecordCounter {
  readonly nonce = Buffer.alloc(12);
  #count = 0;

  /** Returns the nonce of the next record. Throws at the limit, so that a nonce is never repeated. */
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

  /** Writes the record of `prefix` and bytes[start, end) to `target` at `at`. Returns the end position. */
  seal(prefix: Buffer, bytes: Uint8Array, start: number, end: number, target: Buffer, at: number): number {
    const length = prefix.length + end - start;
    if (length > RECORD_PLAIN_MAX_BYTES) throw new RangeError(`${length} bytes do not fit into a record`);
    const cipher = createCipheriv('aes-256-gcm', this.#key, this.#counter.next());
    target.writeUInt16BE(length + TAG_BYTES, at);
    if (prefix.length > 0) target.set(cipher.update(prefix), at + LENGTH_BYTES);
    target.set(cipher.update(bytes.subarray(start, end)), at + LENGTH_BYTES + prefix.length);
    // GCM has no final block: final() returns no bytes, but computes the tag.
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

  /** Decrypts a record (without its length) into new memory. Returns no bytes unless the tag is valid. */
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
