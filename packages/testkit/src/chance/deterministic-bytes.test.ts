import { describe, expect, it } from 'vitest';
import { deterministicBytes, deterministicChunks, hashOf, seededRandom } from './deterministic-bytes.ts';

describe('deterministic bytes', () => {
  it('are equal for equal seeds, different otherwise, and a prefix of a longer run', () => {
    const bytes = deterministicBytes(200_000, 7);
    expect(bytes.equals(deterministicBytes(200_000, 7))).toBe(true);
    expect(bytes.equals(deterministicBytes(200_000, 8))).toBe(false);
    expect(deterministicBytes(300_000, 7).subarray(0, 200_000).equals(bytes)).toBe(true);
    expect(bytes.subarray(0, 65_536).equals(bytes.subarray(65_536, 131_072))).toBe(false);
  });

  it('have the same hash in chunks and as a whole', () => {
    expect(hashOf(deterministicChunks(100_001, 1))).toBe(hashOf(deterministicBytes(100_001, 1)));
    expect(hashOf(new Uint8Array(0))).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });
});

describe('seededRandom', () => {
  it('returns the same numbers for the same seed, all in [0, 1)', () => {
    const a = seededRandom(42);
    const b = seededRandom(42);
    const numbers = Array.from({ length: 1000 }, () => a());
    expect(Array.from({ length: 1000 }, () => b())).toEqual(numbers);
    expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true);
    expect(new Set(numbers).size).toBeGreaterThan(990);
  });
});
