import { expect, it } from 'vitest';
import { readRange } from './range.rules.ts';

const file = { bytes: 100, etag: '"a"' };
const read = (range: string | undefined, ifRange?: string) => readRange({ range, ifRange }, file);

it.each([
  ['bytes=0-0', 0, 1],
  ['bytes=0-99', 0, 100],
  ['bytes=10-', 10, 90],
  ['bytes=99-', 99, 1],
  ['bytes=10-1000', 10, 90],
  ['bytes=-1', 99, 1],
  ['bytes=-100', 0, 100],
  ['bytes=-1000', 0, 100],
  ['BYTES=1-2', 1, 2],
])('%s is a part', (range, start, length) => {
  expect(read(range)).toEqual({ start, length });
});

it.each(['bytes=100-', 'bytes=100-200', 'bytes=-0'])('%s is outside', (range) => {
  expect(read(range)).toBe('outside');
});

it.each([
  ...['bytes=', 'bytes=-', 'bytes=2-1', 'bytes=0-1,5-6', 'lines=0-1', 'bytes=a-b', 'bytes=0-1;', ''],
  ...['bytes=1e1-', 'bytes=0x1-', 'bytes=99999999999999999999-', 'bytes= 0-1'],
])('%j is not supported, so the whole file is sent', (range) => {
  expect(read(range)).toBe('whole');
});

it('a range for another content of the file is not used', () => {
  expect(read('bytes=1-2', '"a"')).toEqual({ start: 1, length: 2 });
  expect(read('bytes=1-2', '"b"')).toBe('whole');
  expect(read('bytes=1-2', 'W/"a"')).toBe('whole');
  expect(read(undefined)).toBe('whole');
});
