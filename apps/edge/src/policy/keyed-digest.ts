// SHA-256 of a text behind a key of this process: how a secret text is known again. Texts all the way: buffers cost more than the digest.
import { hash, randomBytes } from 'node:crypto';

/** As base64url they are the 64 characters of a whole block. */
const KEY_BYTES = 48;

/** What is kept in memory of a secret text, so that it can be known again and never be read. It leaves this process nowhere. */
export type KeyedDigest = (text: string) => string;

export const createKeyedDigest = (): KeyedDigest => {
  const key = randomBytes(KEY_BYTES).toString('base64url');
  return (text) => hash('sha256', key + text, 'base64url');
};
