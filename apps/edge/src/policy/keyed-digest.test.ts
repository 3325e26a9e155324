import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { createKeyedDigest } from './keyed-digest.ts';

it.each(['', 'a', 'pässwörd', 'x'.repeat(300)])('is the HMAC of the standard: %j', (text) => {
  for (const key of [Buffer.from('k'), Buffer.alloc(64, 7)]) {
    expect(createKeyedDigest(key)(text)).toBe(createHmac('sha256', key).update(text, 'utf8').digest('base64url'));
  }
});

it('another process has another key', () => {
  expect(createKeyedDigest()('a')).not.toBe(createKeyedDigest()('a'));
});
