import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { createKeyedDigest } from './keyed-digest.ts';

it.each(['', 'a', 'pässwörd', 'x'.repeat(300), '€'.repeat(341), 'x'.repeat(342), '€'.repeat(1000)])(
  'is the HMAC of the standard: %j',
  (text) => {
    for (const key of [Buffer.from('k'), Buffer.alloc(64, 7)]) {
      expect(createKeyedDigest(key)(text)).toBe(createHmac('sha256', key).update(text, 'utf8').digest('base64url'));
    }
  },
);

it('of one text nothing is left for the next', () => {
  const key = Buffer.alloc(64, 7);
  const digest = createKeyedDigest(key);
  const texts = ['long'.repeat(50), 'short', '', 'long'.repeat(50), 'x'.repeat(5000), 'short'];
  expect(texts.map(digest)).toEqual(texts.map((text) => createHmac('sha256', key).update(text).digest('base64url')));
});

it('another process has another key', () => {
  expect(createKeyedDigest()('a')).not.toBe(createKeyedDigest()('a'));
});
