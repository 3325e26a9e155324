// Generates and hashes bytes from a seed. Both ends of a test can generate the same bytes, so transfers are compared without storing
// them.
import { createHash } from 'node:crypto';

const CHUNK_BYTES = 64 * 1024;

/** Yields `total` bytes in chunks. The bytes depend only on the seed and their position. */
export function* deterministicChunks(total: number, seed: number): Generator<Buffer> {
  let state = (seed ^ 0x9e3779b9) >>> 0 || 1;
  for (let left = total; left > 0; left -= CHUNK_BYTES) {
    const words = new Uint32Array(CHUNK_BYTES / 4);
    for (let i = 0; i < words.length; i++) {
      // xorshift32 has a period long enough to reveal any lost or repeated chunk.
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      words[i] = state;
    }
    yield Buffer.from(words.buffer, 0, Math.min(left, CHUNK_BYTES));
  }
}

export const deterministicBytes = (total: number, seed: number): Buffer =>
  Buffer.concat([...deterministicChunks(total, seed)], total);

export const hashOf = (bytes: Uint8Array | Iterable<Uint8Array>): string => {
  const hash = createHash('sha256');
  if (bytes instanceof Uint8Array) hash.update(bytes);
  else for (const chunk of bytes) hash.update(chunk);
  return hash.digest('hex');
};

/**
 * Makes a random number generator with repeatable results: the same seed gives the same numbers in [0, 1) on every computer (mulberry32).
 */
export const seededRandom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
};
