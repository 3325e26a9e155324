import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeOnce, foldCase } from './percent.ts';

describe('percent-encoding', () => {
  it.each([
    ['/a%20b', '/a b'],
    ['/%61dmin', '/admin'],
    ['/%2561dmin', '/%61dmin'],
    ['/a%2Fb%5Cc', '/a%2fb%5cc'],
    ['/caf%C3%a9/%F0%9F%98%80', '/café/😀'],
    ['/%', '/%'],
    ['/%2', '/%2'],
    ['/%zz%41', '/%zzA'],
    ['/%%41', '/%A'],
    ['/%c0%ae%c0%af', '/%c0%ae%c0%af'],
    ['/%e0%80%af', '/%e0%80%af'],
    ['/%ed%a0%80', '/%ed%a0%80'],
    ['/%f4%90%80%80', '/%f4%90%80%80'],
    ['/%C3A', '/%C3A'],
    ['/%C3%41', '/%C3A'],
    ['/%00', '/\0'],
  ])('of %s decodes to %j', (text, decoded) => {
    expect(decodeOnce(text)).toBe(decoded);
  });

  it('decodes like decodeURIComponent, except for encoded separators', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 20 }), (text) => {
        const encoded = encodeURIComponent(text);
        expect(decodeOnce(encoded)).toBe(text.replaceAll('/', '%2f').replaceAll('\\', '%5c'));
      }),
      { numRuns: 2000 },
    );
  });

  it('never decodes to a separator', () => {
    const part = fc.constantFrom('%', '2', 'f', 'F', '5', 'c', 'C', '%2f', '%5C', '%25', 'a', '%c0%af', '%e2%88%95');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        expect(decodeOnce(parts.join(''))).not.toMatch(/[/\\]/);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('case folding', () => {
  it.each([
    ['/Secret', '/\u017fecret'],
    ['/kelvin', '/\u212aelvin'],
    ['/straße', '/STRASSE'],
    ['/ẞ', '/ss'],
    ['/file', '/\ufb01le'],
    ['/caf\u00e9', '/CAFE\u0301'],
    ['/ΟΔΟΣ', '/οδος'],
    ['/admin', '/ad\u200cmin'],
    ['/\u1e69', '/s\u0307\u0323'],
  ])('makes %s and %s equal', (one, other) => {
    expect(foldCase(one)).toBe(foldCase(other));
  });

  it.each([
    ['ADMIN', 'admin'],
    ['admın', 'admin'],
    ['ADMİN', 'admin'],
    ['ſtats', 'stats'],
    ['\u212aeys', 'keys'],
    ['ａＤmin', 'admin'],
    ['STRASSE', 'strasse'],
    ['straße', 'strasse'],
    ['STRAẞE', 'strasse'],
    ['ΟΔΟΣ', 'οδοσ'],
    ['caf\u00e9', 'cafe\u0301'],
    ['ad\u200cmin\ufeff', 'admin'],
    ['a\uff0fb', 'a\uff0fb'],
    ['\u2100', '\u2100'],
  ])('of %s gives %s', (text, folded) => {
    expect(foldCase(text)).toBe(folded);
  });

  it('treats every Unicode character like its lower case, upper case and NFC form, and never creates a separator', () => {
    const different: string[] = [];
    for (let point = 0; point <= 0x1_ffff; point += 1) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const character = String.fromCodePoint(point);
      const same = [character.toLowerCase(), character.toUpperCase(), character.normalize('NFC')];
      // Most characters have neither a case nor a decomposition.
      if (character.normalize('NFKD') === character && same.every((one) => one === character)) continue;
      const folded = foldCase(character);
      if (same.some((one) => foldCase(one) !== folded)) different.push(character);
      if (point !== 0x2f && folded.includes('/')) different.push(character);
      if (foldCase(folded) !== folded) different.push(character);
    }
    // The lower case of İ has two characters, and folds differently from İ.
    expect(different.filter((one) => one !== 'İ')).toEqual([]);
  });

  it('sorts the combining marks of a letter, and keeps at most 32 marks', () => {
    const marks = (count: number): string => '\u0301\u0323'.repeat(count / 2);
    const sorted = (count: number): string => '\u0323'.repeat(count / 2) + '\u0301'.repeat(count / 2);
    expect(foldCase(`A${marks(30)}`)).toBe(`a${sorted(30)}`);
    expect(foldCase(`CAF\u00c9/A${marks(5000)}b`)).toBe(`cafe\u0301/a${sorted(32)}b`);
    expect(foldCase(`A${'\u0301\u034f'.repeat(5000)}`)).toBe(`a${'\u0301'.repeat(32)}`);
  });

  it('of a text equals the folding of its pieces, so that a wildcard can stand between any two', () => {
    const piece = fc.constantFrom('a', 'I', 'ı', 'İ', 'ß', 'ſ', 'Σ', 'ς', 'é', 'e\u0301', 'ﬁ', 'ａ', '/', '.', '/');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        expect(foldCase(pieces.join(''))).toBe(pieces.map(foldCase).join(''));
      }),
      { numRuns: 1000 },
    );
  });
});
