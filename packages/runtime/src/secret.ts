// Secrets and randomness: a wrapper that prints masked, hashing, constant-time comparison, random tokens and ids.
import { createHash, randomBytes, randomFillSync, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';

const MASK = '[secret]';

/** A text that logs, JSON and inspection do not show. Only `reveal()` returns it, which is easy to search for. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}

export const sha256Hex = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

/** Compares digests of equal length, so that the timing does not even reveal the length. */
export const equalInConstantTime = (a: string, b: string): boolean =>
  timingSafeEqual(createHash('sha256').update(a, 'utf8').digest(), createHash('sha256').update(b, 'utf8').digest());

export const randomToken = (bytes = 32): string => randomBytes(bytes).toString('base64url');

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_CHARACTERS = 20;
/** The largest multiple of 62 below 256. Higher bytes would favor the first letters. */
const UNBIASED_BELOW = 248;

/**
 * Random bytes, read from the system 2 KiB at a time, because a system call per id would cost ten times as much as the rest. Used bytes are
 * overwritten, so that memory does not hold them twice.
 */
class RandomBytes {
  readonly #bytes = Buffer.alloc(2048);
  #at = this.#bytes.length;

  next(): number {
    if (this.#at === this.#bytes.length) {
      randomFillSync(this.#bytes);
      this.#at = 0;
    }
    const byte = this.#bytes[this.#at] ?? 0;
    this.#bytes[this.#at] = 0;
    this.#at += 1;
    return byte;
  }
}

const RANDOM_BYTES = new RandomBytes();

/** Creates a random id: `randomId('tun')` returns `tun_` and 20 base62 characters (119 bits). */
export const randomId = (prefix: string, characters = ID_CHARACTERS): string => {
  let id = '';
  while (id.length < characters) {
    const byte = RANDOM_BYTES.next();
    if (byte < UNBIASED_BELOW) id += BASE62.charAt(byte % BASE62.length);
  }
  return prefix.endsWith('_') ? prefix + id : `${prefix}_${id}`;
};

/** Returns random bytes as lower-case hex digits, two per byte. */
export const randomHex = (bytes: number): string => {
  let text = '';
  for (let at = 0; at < bytes; at += 1) text += RANDOM_BYTES.next().toString(16).padStart(2, '0');
  return text;
};
