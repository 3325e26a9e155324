import { parseRequestHead, parseResponseHead, type RequestHead, type ResponseHead } from '@tunnel/http1';
import { describe, expect, it } from 'vitest';
import { requestHeadOf, responseFieldsOf, responseHeadOf, serviceFieldsOf, trailersOf } from './http2-fields.ts';

const GET = { method: 'GET', upgrade: null };
const request = (...fields: string[]): string[] => [
  ...[':method', 'GET', ':scheme', 'https', ':path', '/a', ':authority', 'web.test'],
  ...fields,
];

describe('an HTTP/2 request', () => {
  it('is converted with one cookie field, its authority as Host, and chunks if it has no length', () => {
    const head = requestHeadOf(request('cookie', 'a=1', 'x', 'y', 'cookie', 'b=2'), true);
    expect(head).toMatchObject({ host: 'web.test', framing: { kind: 'chunked' } });
    expect('text' in head ? head.text : '').toBe(
      'GET /a HTTP/1.1\r\nHost: web.test\r\nx: y\r\ncookie: a=1; b=2\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
  });

  it.each([
    ['a Host that is another', request('host', 'other.test'), 400],
    ['a line hidden in a value', request('x', 'a\r\nHost: other.test'), 400],
    ['a line hidden in the path', [':method', 'GET', ':path', '/ HTTP/1.1\r\nx: y', ':authority', 'web.test'], 400],
    ['a field of the connection', request('connection', 'close'), 400],
    ['a coding', request('transfer-encoding', 'chunked'), 400],
    ['no authority', [':method', 'GET', ':path', '/'], 400],
    ['CONNECT', [':method', 'CONNECT', ':authority', 'web.test:443'], 501],
    ['a head that is too long', request('x', 'y'.repeat(33_000)), 431],
  ] as const)('is refused for %s', (_, raw, status) => {
    expect(requestHeadOf(raw, false)).toMatchObject({ kind: 'problem', status });
  });
});

describe('a response to an HTTP/2 visitor', () => {
  const fieldsOf = (...lines: string[]) => {
    const head = parseResponseHead(`HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\n\r\n`, GET) as ResponseHead;
    return { ...responseFieldsOf(head) };
  };

  it('keeps repeated fields as far as Node.js allows, and fields of any name', () => {
    expect(
      fieldsOf(
        ...['Set-Cookie: a', 'Set-Cookie: b', 'Set-Cookie: c', 'Vary: x', 'Vary: y'],
        ...['Content-Type: one', 'Content-Type: two', 'Content-Encoding: gzip', 'Content-Encoding: br'],
        ...['__proto__: odd', 'Content-Length: 3'],
      ),
    ).toEqual(
      Object.fromEntries([
        [':status', 200],
        ['set-cookie', ['a', 'b', 'c']],
        ['vary', ['x', 'y']],
        ['content-type', 'one'],
        ['content-encoding', 'gzip, br'],
        ['__proto__', 'odd'],
        ['content-length', '3'],
      ]),
    );
  });

  it('contains no connection-specific fields', () => {
    const fields = fieldsOf(
      'Connection: keep-alive, X-Mine',
      'X-Mine: 1',
      'Keep-Alive: 5',
      'Transfer-Encoding: chunked',
    );
    expect(fields).toEqual({ ':status': 200 });
  });
});

describe('a local HTTP/2 service', () => {
  it('gets pseudo-header fields and no connection-specific fields', () => {
    const head = parseRequestHead(
      'POST /a?b HTTP/1.1\r\nHost: web.test\r\nX: y\r\nX-Forwarded-For: 1.2.3.4\r\nContent-Length: 3\r\n' +
        'Connection: Upgrade, TE\r\nUpgrade: websocket\r\nTE: trailers\r\n\r\n',
    ) as RequestHead;
    expect({ ...serviceFieldsOf(head, { visitorAddress: '5.6.7.8', proto: 'https', hostHeader: 'keep' }) }).toEqual({
      ':method': 'POST',
      ':path': '/a?b',
      ':scheme': 'http',
      ':authority': 'web.test',
      'x-forwarded-for': '1.2.3.4, 5.6.7.8',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'web.test',
      'x-forwarded-port': '443',
      'x-real-ip': '5.6.7.8',
      x: 'y',
      'content-length': '3',
      te: 'trailers',
    });
  });

  it('has its response heads framed and checked as in HTTP/1.1', () => {
    expect(responseHeadOf([':status', '200', 'x', 'y'], GET, false)).toMatchObject({ framing: { kind: 'chunked' } });
    expect(responseHeadOf([':status', '200'], GET, true)).toMatchObject({ framing: { kind: 'length', length: 0 } });
    expect(responseHeadOf([':status', '204'], GET, true)).toMatchObject({ framing: { kind: 'none' } });
    expect(responseHeadOf([':status', '103', 'link', '<a>'], GET, false)).toMatchObject({ interim: true });
    expect(responseHeadOf([':status', '101', 'upgrade', 'x'], GET, false)).toMatchObject({ kind: 'problem' });
    expect(responseHeadOf([':status', '200', 'x', 'a\nb'], GET, false)).toMatchObject({ kind: 'problem', status: 502 });
  });

  it('has its trailers filtered as in HTTP/1.1', () => {
    expect(trailersOf(['grpc-status', '0', 'content-type', 'late'])?.map(({ name }) => name)).toEqual(['grpc-status']);
    expect(trailersOf(['content-length', '3'])).toBeNull();
  });
});
