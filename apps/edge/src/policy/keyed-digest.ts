// HMAC-SHA-256 with a key of this process, by two one-shot hashes: an `Hmac` object costs five times as much to make.
import { hash, randomBytes } from 'node:crypto';

const BLOCK_BYTES = 64;
const HASH_BYTES = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
/** Texts of which each may be so long share memory: none is made for each. */
const SHARED_BYTES = 1024;
/** UTF-8 has no more for a character of a text. */
const UTF8_BYTES_MAX = 3;

/** What is kept in memory of a secret text, so that it can be known again and never be read. */
export type KeyedDigest = (text: string) => string;

export const createKeyedDigest = (key: Buffer = randomBytes(BLOCK_BYTES)): KeyedDigest => {
  if (key.length > BLOCK_BYTES) throw new RangeError('a key is at most one block long');
  const padded = Buffer.concat([key, Buffer.alloc(BLOCK_BYTES - key.length)]);
  const inner = padded.map((byte) => byte ^ INNER_PAD);
  const outer = padded.map((byte) => byte ^ OUTER_PAD);
  const message = Buffer.concat([inner, Buffer.alloc(SHARED_BYTES)]);
  const second = Buffer.concat([outer, Buffer.alloc(HASH_BYTES)]);
  const innerDigest = (text: string): string => {
    if (text.length * UTF8_BYTES_MAX > SHARED_BYTES) {
      return hash('sha256', Buffer.concat([inner, Buffer.from(text, 'utf8')]), 'binary');
    }
    const end = BLOCK_BYTES + message.write(text, BLOCK_BYTES, 'utf8');
    const digest = hash('sha256', message.subarray(0, end), 'binary');
    // It is a secret: it does not stay here.
    message.fill(0, BLOCK_BYTES, end);
    return digest;
  };
  return (text) => {
    second.write(innerDigest(text), BLOCK_BYTES, 'latin1');
    return hash('sha256', second, 'base64url');
  };
};
