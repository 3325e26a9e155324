import { createHash, createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { NODE_DIGESTS } from './node-digests.ts';

it('sha256Hex hashes text as UTF-8 and returns lower-case hex', () => {
  expect(NODE_DIGESTS.sha256Hex('schlüssel')).toBe(createHash('sha256').update('schlüssel', 'utf8').digest('hex'));
});

it.each(['sha1', 'sha256', 'sha512'] as const)('hmac signs several parts as one text: %s', (algorithm) => {
  const key = Buffer.from('key');
  const parts = [Buffer.from('v1.'), new Uint8Array(0), Buffer.from('body')];
  const whole = createHmac(algorithm, key).update('v1.body').digest();
  expect(Buffer.from(NODE_DIGESTS.hmac(algorithm, key, parts))).toEqual(whole);
});

it('equal compares bytes, and returns false for different lengths', () => {
  const a = Buffer.from('same');
  const b = Buffer.from('else');
  expect([NODE_DIGESTS.equal(a, Buffer.from('same')), NODE_DIGESTS.equal(a, b)]).toEqual([true, false]);
  expect(NODE_DIGESTS.equal(a, Buffer.from('longer'))).toBe(false);
});
