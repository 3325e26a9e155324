import { describe, expect, it } from 'vitest';
import { type AnsweredRequest, parseResponseHead, type ResponseHead } from './response-head.ts';

const GET: AnsweredRequest = { method: 'GET', upgrade: null };
const HEAD: AnsweredRequest = { method: 'HEAD', upgrade: null };

const read = (statusLine: string, lines: readonly string[] = [], request = GET): ReturnType<typeof parseResponseHead> =>
  parseResponseHead([statusLine, ...lines, '', ''].join('\r\n'), request);

const parsed = (...args: Parameters<typeof read>): ResponseHead => {
  const head = read(...args);
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

describe('a response head', () => {
  it('is parsed with its reason and headers', () => {
    const head = parsed('HTTP/1.1 404 Not \xe4 Found', ['Content-Length: 3', 'A: b']);
    expect(head).toMatchObject({ status: 404, reason: 'Not \xe4 Found', framing: { kind: 'length', length: 3 } });
    expect(head.headers.map(({ lower }) => lower)).toEqual(['content-length', 'a']);
  });

  it.each(['HTTP/1.1 200 ', 'HTTP/1.1 200'])('can have no reason: %j', (line) => {
    expect(parsed(line)).toMatchObject({ status: 200, reason: '' });
  });

  it.each([
    ['HTTP/1.1 200 OK', ['Content-Length: 0'], GET, { kind: 'length', length: 0 }, true],
    ['HTTP/1.1 200 OK', ['Transfer-Encoding: chunked'], GET, { kind: 'chunked' }, true],
    ['HTTP/1.1 200 OK', [], GET, { kind: 'until-close' }, false],
    ['HTTP/1.0 200 OK', ['Connection: keep-alive'], GET, { kind: 'until-close' }, false],
    ['HTTP/1.0 200 OK', ['Connection: keep-alive', 'Content-Length: 1'], GET, { kind: 'length', length: 1 }, true],
    ['HTTP/1.0 200 OK', ['Content-Length: 1'], GET, { kind: 'length', length: 1 }, false],
    ['HTTP/1.1 200 OK', ['Connection: close', 'Content-Length: 1'], GET, { kind: 'length', length: 1 }, false],
    ['HTTP/1.1 200 OK', ['Content-Length: 9'], HEAD, { kind: 'none' }, true],
    ['HTTP/1.1 200 OK', ['Transfer-Encoding: chunked'], HEAD, { kind: 'none' }, true],
    ['HTTP/1.1 304 Not Modified', ['Content-Length: 9'], GET, { kind: 'none' }, true],
    ['HTTP/1.1 204 No Content', ['Content-Length: 0'], GET, { kind: 'none' }, true],
    // A body may arrive even where none is allowed, so the connection is not reused.
    ['HTTP/1.1 204 No Content', ['Content-Length: 9'], GET, { kind: 'none' }, false],
    ['HTTP/1.1 204 No Content', ['Transfer-Encoding: chunked'], GET, { kind: 'none' }, false],
    ['HTTP/1.1 205 Reset Content', ['Content-Length: 0'], GET, { kind: 'length', length: 0 }, true],
  ])('%s %j has the right framing and keep-alive', (line, lines, request, framing, keepAlive) => {
    expect(parsed(line, lines, request)).toMatchObject({ framing, keepAlive });
  });

  it.each([100, 102, 103, 199])('with status %i is interim', (status) => {
    expect(parsed(`HTTP/1.1 ${status} x`)).toMatchObject({ interim: true, framing: { kind: 'none' } });
  });

  it('with status 101 is final, and valid only for a requested upgrade with a named protocol', () => {
    const request = { method: 'GET', upgrade: 'websocket' };
    expect(parsed('HTTP/1.1 101 x', ['Upgrade: websocket'], request)).toMatchObject({
      interim: false,
      upgrade: 'websocket',
      keepAlive: false,
    });
    expect(read('HTTP/1.1 101 x', ['Upgrade: websocket'])).toMatchObject({ status: 502 });
    expect(read('HTTP/1.1 101 x', [], request)).toMatchObject({ status: 502 });
  });
});

describe('a malformed response head', () => {
  it.each([
    ['HTTP/2 200 OK', []],
    ['HTTP/1.2 200 OK', []],
    ['http/1.1 200 OK', []],
    ['ICY 200 OK', []],
    ['HTTP/1.1  200 OK', []],
    ['HTTP/1.1 20 OK', []],
    ['HTTP/1.1 2000 OK', []],
    ['HTTP/1.1 099 OK', []],
    ['HTTP/1.1 600 OK', []],
    ['HTTP/1.1 +20 OK', []],
    ['HTTP/1.1 200\tOK', []],
    ['HTTP/1.1 200 O\0K', []],
    ['HTTP/1.1 200 O\rK', []],
    ['HTTP/1.1 200 OK\nX: y', []],
    ['HTTP/1.1 200 OK', ['Content-Length: 1', 'Transfer-Encoding: chunked']],
    ['HTTP/1.1 200 OK', ['Content-Length: 1', 'Content-Length: 1']],
    ['HTTP/1.1 200 OK', ['Content-Length: 1, 1']],
    ['HTTP/1.1 200 OK', ['Content-Length: -1']],
    ['HTTP/1.1 200 OK', ['Transfer-Encoding: gzip, chunked']],
    ['HTTP/1.1 200 OK', ['Transfer-Encoding: identity']],
    ['HTTP/1.1 200 OK', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    ['HTTP/1.0 200 OK', ['Transfer-Encoding: chunked']],
    ['HTTP/1.1 200 OK', ['X : y']],
    ['HTTP/1.1 200 OK', ['X: y', ' z']],
    ['HTTP/1.1 200 OK', ['X: y\0']],
    ['HTTP/1.1 200 OK', ['no colon']],
  ])('%j %j gives a 502', (line, lines) => {
    expect(read(line, lines)).toMatchObject({ kind: 'problem', status: 502 });
  });
});
