// Secrets and chance: a wrapper that prints masked, hashing, comparing in constant time, random tokens and ids.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';

const MASK = '[secret]';

/** A text that no log, JSON or inspection shows. `reveal()` is the only way to it, and easy to search for. */
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

/** Hashing both sides first gives equal lengths, so that not even the length shows in the time taken. */
export const equalInConstantTime = (a: string, b: string): boolean =>
  timingSafeEqual(createHash('sha256').update(a, 'utf8').digest(), createHash('sha256').update(b, 'utf8').digest());

export const randomToken = (bytes = 32): string => randomBytes(bytes).toString('base64url');

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_CHARACTERS = 20;
/** The largest multiple of 62 below 256: bytes from here on would favour the first letters. */
const UNBIASED_BELOW = 248;

/** `randomId('tun')` gives `tun_` and 20 base62 characters (119 bits). */
export const randomId = (prefix: string, characters = ID_CHARACTERS): string => {
  let id = '';
  while (id.length < characters) {
    for (const byte of randomBytes(characters)) {
      if (byte < UNBIASED_BELOW && id.length < characters) id += BASE62.charAt(byte % BASE62.length);
    }
  }
  return prefix.endsWith('_') ? prefix + id : `${prefix}_${id}`;
};
