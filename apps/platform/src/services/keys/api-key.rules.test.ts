import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { API_KEY_RANDOM_BYTES, isApiKey, makeApiKey } from './api-key.rules.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const bytes = fc.uint8Array({ minLength: API_KEY_RANDOM_BYTES, maxLength: API_KEY_RANDOM_BYTES, max: 247 });

describe('API keys', () => {
  it('have a prefix, 32 random characters and a 6-character CRC-32', () => {
    fc.assert(
      fc.property(bytes, (random) => {
        const key = makeApiKey(random);
        expect(key).toMatch(/^tnl_[0-9A-Za-z]{38}$/);
        const sum = [...key.slice(-6)].reduce((value, digit) => value * 62 + BASE62.indexOf(digit), 0);
        expect(sum).toBe(crc32(key.slice(4, 36)));
      }),
    );
  });

  it('are recognized, and rejected if any character changes', () => {
    fc.assert(
      fc.property(bytes, fc.nat(37), fc.integer({ min: 1, max: 61 }), (random, offset, shift) => {
        const key = makeApiKey(random);
        expect(isApiKey(key)).toBe(true);
        const at = 4 + offset;
        const other = BASE62.charAt((BASE62.indexOf(key.charAt(at)) + shift) % 62);
        expect(isApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBe(false);
      }),
    );
  });

  it.each(['', 'tnl_', 'tnl_short', `xyz_${'0'.repeat(38)}`, `tnl_${'0'.repeat(38)}\n`])(
    'do not include %j',
    (text) => {
      expect(isApiKey(text)).toBe(false);
    },
  );

  it('skip random bytes that would bias the characters, and reject a poor random source', () => {
    const random = new Uint8Array(API_KEY_RANDOM_BYTES).fill(255);
    expect(() => makeApiKey(random)).toThrow(RangeError);
    random.fill(1, 0, 32);
    expect(makeApiKey(random).slice(4, 36)).toBe('1'.repeat(32));
  });
});
