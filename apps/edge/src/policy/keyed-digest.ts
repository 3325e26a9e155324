// HMAC-SHA-256 with a key of this process, by two one-shot hashes: an `Hmac` object costs five times as much to make.
import { hash, randomBytes } from 'node:crypto';

const BLOCK_BYTES = 64;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/** What is kept in memory of a secret text, so that it can be known again and never be read. */
export type KeyedDigest = (text: string) => string;

export const createKeyedDigest = (key: Buffer = randomBytes(BLOCK_BYTES)): KeyedDigest => {
  if (key.length > BLOCK_BYTES) throw new RangeError('a key is at most one block long');
  const padded = Buffer.concat([key, Buffer.alloc(BLOCK_BYTES - key.length)]);
  const inner = padded.map((byte) => byte ^ INNER_PAD);
  const outer = padded.map((byte) => byte ^ OUTER_PAD);
  return (text) => {
    const digest = hash('sha256', Buffer.concat([inner, Buffer.from(text, 'utf8')]), 'buffer');
    return hash('sha256', Buffer.concat([outer, digest]), 'base64url');
  };
};
