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
  ])('%s is %j', (text, decoded) => {
    expect(decodeOnce(text)).toBe(decoded);
  });

  it('is that of decodeURIComponent, but for encoded separators', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 20 }), (text) => {
        const encoded = encodeURIComponent(text);
        expect(decodeOnce(encoded)).toBe(text.replaceAll('/', '%2f').replaceAll('\\', '%5c'));
      }),
      { numRuns: 2000 },
    );
  });

  it('never makes a separator', () => {
    const part = fc.constantFrom('%', '2', 'f', 'F', '5', 'c', 'C', '%2f', '%5C', '%25', 'a', '%c0%af', '%e2%88%95');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        expect(decodeOnce(parts.join(''))).not.toMatch(/[/\\]/);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('without case', () => {
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
  ])('%s and %s are one', (one, other) => {
    expect(foldCase(one)).toBe(foldCase(other));
  });

  it('sorts the marks of a letter, and leaves of a run that only an attacker writes as many as no letter has', () => {
    const marks = (count: number): string => '\u0301\u0323'.repeat(count / 2);
    const sorted = (count: number): string => '\u0323'.repeat(count / 2) + '\u0301'.repeat(count / 2);
    expect(foldCase(`A${marks(30)}`)).toBe(`a${sorted(30)}`);
    expect(foldCase(`CAF\u00c9/A${marks(5000)}b`)).toBe(`cafe\u0301/a${sorted(32)}b`);
    expect(foldCase(`A${'\u0301\u034f'.repeat(5000)}`)).toBe(`a${'\u0301'.repeat(32)}`);
  });

  it('is done once, and to each part by itself', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 8 });
    fc.assert(
      fc.property(text, text, (one, other) => {
        const folded = foldCase(`${one}/${other}`);
        expect(folded).toBe(`${foldCase(one)}/${foldCase(other)}`);
        expect(foldCase(folded)).toBe(folded);
      }),
      { numRuns: 3000 },
    );
  });
});
