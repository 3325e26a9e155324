import { describe, expect, it } from 'vitest';
import { dollarsText, parseDollars } from './money.ts';

describe('dollars', () => {
  it.each([
    ['20', 2000],
    [' $7.5 ', 750],
    ['7.05', 705],
    ['0', 0],
    ['0.01', 1],
    ['.5', 50],
    ['3.', 300],
    ['1,234.56', 123_456],
    ['1,234,567', 123_456_700],
    ['19.99', 1999],
    ['90071992547409.91', Number.MAX_SAFE_INTEGER],
  ])('%j are %i cents', (text, cents) => {
    expect(parseDollars(text)).toEqual({ cents });
  });

  it.each([
    '',
    '  ',
    '-1',
    '$-5',
    'ten',
    '1.234',
    '1,23',
    '1e3',
    '.',
    '$',
    '5 000',
    '12,34.5',
    '999999999999999999',
    'NaN',
  ])('%j is refused with a reason', (text) => {
    expect(parseDollars(text)).toEqual({ problem: expect.stringMatching(/\.$/) });
  });

  it('what is shown in the field is read back as the same', () => {
    for (const cents of [0, 1, 10, 99, 100, 1999, 123_456]) {
      expect(parseDollars(dollarsText(cents))).toEqual({ cents });
    }
  });
});
