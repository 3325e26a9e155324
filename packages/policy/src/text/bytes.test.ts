import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { base64Bytes, base64Text, byteText, hexBytes, textOfBytes, utf8Bytes } from './bytes.ts';

it('text converts to the same UTF-8 bytes as in Node.js, and back', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '%', '\n', '\x7f', '\xe9', '\u20ac', '\u{1f600}', '\uffff') }),
      (text) => {
        expect(Buffer.from(utf8Bytes(text)).equals(Buffer.from(text))).toBe(true);
        expect(byteText(text)).toBe(Buffer.from(text).toString('latin1'));
        expect(textOfBytes(byteText(text))).toBe(text);
      },
    ),
  );
});

it('bytes that are not valid UTF-8 are kept as single characters', () => {
  expect(textOfBytes('caf\xe9%')).toBe('caf\xe9%');
});

it('base64 and hex decode as in Node.js, and invalid text decodes to null', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      const given = Buffer.from(bytes);
      expect(base64Bytes(given.toString('base64'))).toEqual(bytes);
      expect(base64Bytes(given.toString('base64').replace(/=+$/, ''))).toEqual(bytes);
      expect(base64Text(given.toString('base64'))).toBe(given.toString('latin1'));
      expect(hexBytes(given.toString('hex'))).toEqual(bytes);
      expect(hexBytes(given.toString('hex').toUpperCase())).toEqual(bytes);
    }),
  );
  for (const text of [
    'a',
    'ab-_',
    'a b=',
    '\u0000abc',
    'abc\u0000',
    '-bcd',
    'ab!',
    'a!',
    'abcd!a',
    'abcd!aa',
    '=a',
    'abc====',
    'ab===',
    'ab=c',
    'abcd\n',
    'ab\u0141d',
    'a\u20accd',
  ])
    expect(base64Bytes(text)).toBeNull();
  expect(['', '=', '==', 'YQ=', 'YQ=='].map((text) => base64Bytes(text)?.length)).toEqual([0, 0, 0, 1, 1]);
  for (const text of ['a', '0g', '0x', ' 00']) expect(hexBytes(text)).toBeNull();
});
