import { describe, expect, it } from 'vitest';
import { nearestWord } from './nearest-word.ts';

const KNOWN = ['allow', 'deny', 'allow_addresses', 'rate_limit', 'request_headers', 'response_headers'];

describe('the closest known word', () => {
  it.each([
    ['dney', 'deny'],
    ['rate-limit', 'rate_limit'],
    ['Allow', 'allow'],
    ['allow_adresses', 'allow_addresses'],
    ['response_header', 'response_headers'],
    ['request-hedaers', 'request_headers'],
    ['zzz', undefined],
    ['', undefined],
    ['d'.repeat(10_000), undefined],
  ])('to %j is %s', (word, meant) => {
    expect(nearestWord(word, KNOWN)).toBe(meant);
  });

  it('is also found among words with hyphens', () => {
    expect(nearestWord('no_tls', ['no-tls', 'json'])).toBe('no-tls');
  });
});
