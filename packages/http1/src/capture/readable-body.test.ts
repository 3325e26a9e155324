import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { fieldValueOf } from '../fields.ts';
import { parseResponseHead } from '../response-head.ts';
import { readableBody } from './readable-body.ts';

const read = (headers: string, body: Buffer | string): Promise<string | null> => {
  const head = parseResponseHead(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n`, { method: 'GET', upgrade: null });
  if (head.kind !== 'response') throw new Error(head.reason);
  return readableBody(
    {
      kept: Buffer.from(body).toString('latin1'),
      contentType: fieldValueOf(head.headers, 'content-type'),
      contentEncoding: fieldValueOf(head.headers, 'content-encoding'),
    },
    { shownBytes: 16 * 1024, unpackedBytes: 128 * 1024 },
  );
};

describe('the readable text of a body', () => {
  it.each([
    ['Content-Type: text/plain', 'hello', 'hello'],
    ['Content-Type: application/problem+json; charset=utf-8', '{"a":1}', '{"a":1}'],
    ['Content-Type: image/png', 'hello', null],
    ['X: y', 'hello', null],
    ['Content-Type: text/html\r\nContent-Encoding: gzip', gzipSync('packed'), 'packed'],
    ['Content-Type: text/html\r\nContent-Encoding: gzip', gzipSync('cut off '.repeat(50)).subarray(0, 20), /^cut off/],
    ['Content-Type: text/html\r\nContent-Encoding: x-gzip', gzipSync('packed'), 'packed'],
    ['Content-Type: text/html\r\nContent-Encoding: constructor', 'unknown', null],
    ['Content-Type: text/plain', '', null],
    ['Content-Type: text/html\r\nContent-Encoding: br', brotliCompressSync('packed'), 'packed'],
    ['Content-Type: text/html\r\nContent-Encoding: deflate', deflateSync('packed'), 'packed'],
    ['Content-Type: text/html\r\nContent-Encoding: gzip', 'not packed at all', null],
    ['Content-Type: text/html\r\nContent-Encoding: zstd', 'unknown', null],
    ['Content-Type: text/html\r\nContent-Encoding: gzip', gzipSync(Buffer.alloc(50_000_000)), null],
    ['Content-Type: text/plain; charset=iso-8859-1', Buffer.from('\xe4', 'latin1'), 'ä'],
    ['Content-Type: text/plain; charset=nonsense', 'x', 'x'],
    ['Content-Type: text/plain', Buffer.from('aä').subarray(0, 2), 'a'],
    ['Content-Type: application/x-www-form-urlencoded', 'a=1&password=x', 'a=1&password=[redacted]'],
    ['Content-Type: application/json', '{"token": "x", "a": "y"}', '{"token": "[redacted]", "a": "y"}'],
    ['Content-Type: application/json', '{"client_secret":"cut o', '{"client_secret":"[redacted]"'],
  ])('%s', async (headers, body, text) => {
    const shown = await read(headers, body);
    if (text instanceof RegExp) expect(shown).toMatch(text);
    else expect(shown).toBe(text);
  });
});
