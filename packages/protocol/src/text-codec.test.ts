import { describe, expect, it } from 'vitest';
import { cutText, decodeText, decodeTextLoosely, encodeText, encodeTextCut, isLongerThan } from './text-codec.ts';

describe('the UTF-8 text codec', () => {
  it('refuses invalid UTF-8 in data, and replaces it in text for people', () => {
    const broken = Uint8Array.of(0x61, 0xff, 0x62);
    expect(decodeText(broken)).toBeNull();
    expect(decodeTextLoosely(broken)).toBe('a\ufffdb');
    expect(decodeText(encodeText('größer 🚇'))).toBe('größer 🚇');
  });

  it('drops a leading byte order mark, so that JSON can be parsed', () => {
    expect(decodeText(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe('a');
  });

  it('compares lengths in bytes', () => {
    expect([isLongerThan('aaaa', 4), isLongerThan('aaaaa', 4)]).toEqual([false, true]);
    expect([isLongerThan('éé', 4), isLongerThan('ééé', 4), isLongerThan('€a', 4), isLongerThan('€é', 4)]).toEqual([
      false,
      true,
      false,
      true,
    ]);
  });

  it('cuts text between characters', () => {
    expect(decodeText(encodeTextCut('aé', 2))).toBe('a');
    expect(decodeText(encodeTextCut('🚇', 3))).toBe('');
    expect(decodeText(encodeTextCut('🚇', 4))).toBe('🚇');
    expect([cutText('a🚇', 2), cutText('a🚇', 3), cutText('abc', 2)]).toEqual(['a', 'a🚇', 'ab']);
  });
});
