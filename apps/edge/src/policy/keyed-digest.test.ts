import { hash } from 'node:crypto';
import { expect, it } from 'vitest';
import { createKeyedDigest } from './keyed-digest.ts';

const TEXTS = ['', 'a', 'b', 'ab', 'a\0b', 'pässwörd', 'x'.repeat(300), 'x'.repeat(301), '€'.repeat(1000)];

it('a text has one digest, and no two have the same', () => {
  const digest = createKeyedDigest();
  expect(TEXTS.map(digest)).toEqual(TEXTS.map(digest));
  expect(new Set(TEXTS.map(digest)).size).toBe(TEXTS.length);
});

it('without the key nobody can tell of which text it is', () => {
  const digest = createKeyedDigest();
  for (const text of TEXTS) expect(digest(text)).not.toBe(hash('sha256', text, 'base64url'));
});

it('another process has another key', () => {
  expect(createKeyedDigest()('a')).not.toBe(createKeyedDigest()('a'));
});
