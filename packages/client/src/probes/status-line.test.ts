import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readStatusLine } from './status-line.ts';

it.each([
  ['', 'unfinished'],
  ['HTTP', 'unfinished'],
  ['HTTP/1.1 200 O', 'unfinished'],
  ['HTTP/1.1 200 OK\r', 'unfinished'],
  ['HTTP/1.1 200 OK\r\n', { status: 200 }],
  ['HTTP/1.0 599\r\nX: y', { status: 599 }],
  ['HTTP/1.1 200 \xe4\r\n', { status: 200 }],
  ['HTTP/1.1 600 Too Much\r\n', 'not-http'],
  ['HTTP/1.1 099 Too Little\r\n', 'not-http'],
  ['HTTP/1.1 200OK\r\n', 'not-http'],
  ['HTTP/1.1  200 OK\r\n', 'not-http'],
  ['HTTP/1.2 200 OK\r\n', 'not-http'],
  ['http/1.1 200 OK\r\n', 'not-http'],
  ['HTTP/1.1 200 O\0K\r\n', 'not-http'],
  ['HTTP/1.1 200 O\rK\r\n', 'not-http'],
  [' HTTP', 'not-http'],
  ['\r\nHTTP/1.1 200 OK\r\n', 'not-http'],
] as const)('%j is %j', (text, line) => {
  expect(readStatusLine(text)).toEqual(line);
});

it('whatever comes, an end is seen within the bound, and pieces change nothing', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 80 }), fc.boolean(), (rest, isPromising) => {
      const text = isPromising ? `HTTP/1.1 200 ${rest}\r\n` : rest;
      let seen = readStatusLine('');
      for (let end = 1; end <= text.length && seen === 'unfinished'; end += 1)
        seen = readStatusLine(text.slice(0, end));
      expect(seen).toEqual(readStatusLine(text));
      expect(readStatusLine(text.padEnd(4096, 'x'))).not.toBe('unfinished');
    }),
  );
});
