import { describe, expect, it } from 'vitest';
import { parseRequestHead, type RequestHead } from './request-head.ts';
import { parseResponseHead, type ResponseHead } from './response-head.ts';
import { endToEndFields, forwardedForOf, forwardedProtoOf, requestHeadFor, responseHeadFor } from './rewrite.ts';

const lined = (...lines: string[]): string => [...lines, '', ''].join('\r\n');

const request = (...lines: string[]): RequestHead => {
  const head = parseRequestHead(lined(...lines));
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

const OPTIONS = { visitorAddress: '203.0.113.7', proto: 'https', hostHeader: 'keep' } as const;
const sent = (...lines: string[]): string[] =>
  requestHeadFor(request(...lines), OPTIONS)
    .split('\r\n')
    .slice(0, -2);

const FORWARDED = [
  'X-Forwarded-For: 203.0.113.7',
  'X-Forwarded-Proto: https',
  'X-Forwarded-Host: web.localhost',
  'X-Forwarded-Port: 443',
  'X-Real-IP: 203.0.113.7',
];

describe('the request head for the local service', () => {
  it('has all end-to-end headers, and the X-Forwarded-* headers of the edge', () => {
    expect(sent('GET /a?b HTTP/1.1', 'Host: web.localhost', 'Accept: */*', 'Cookie: a', 'X-A:b')).toEqual([
      'GET /a?b HTTP/1.1',
      'Host: web.localhost',
      'Accept: */*',
      'Cookie: a',
      'X-A:b',
      ...FORWARDED,
    ]);
  });

  it('has X-Tunnel-Replay only for a replay, and never from the visitor', () => {
    const claims = ['X-Tunnel-Replay: req_9', 'x_tunnel_replay: req_9'];
    const head = request(
      'POST / HTTP/1.1',
      'Host: web.localhost',
      ...claims,
      'Content-Length: 3',
      'TE: trailers',
      'Connection: TE',
    );
    expect(requestHeadFor(head, { ...OPTIONS, replayOf: 'req_1' })).toMatch(/\r\nX-Tunnel-Replay: req_1\r\n\r\n$/);
    expect(requestHeadFor(head, { ...OPTIONS, replayOf: 'req_1' })).not.toContain('req_9');
    expect(requestHeadFor(head, OPTIONS)).not.toMatch(/replay/i);
  });

  it('has the address from a trusted proxy in X-Forwarded-For', () => {
    const head = request('GET / HTTP/1.1', 'Host: web.localhost', 'X-Forwarded-For: 6.6.6.6, 10.0.0.2');
    expect(requestHeadFor(head, { ...OPTIONS, forwardedFor: '6.6.6.6' }).split('\r\n')).toContain(
      'X-Forwarded-For: 6.6.6.6',
    );
  });

  it.each([
    [['X-Forwarded-Port: 8443'], '8443'],
    [['X-Forwarded-Port: 1, 8443'], '8443'],
    [['X-Forwarded-Port: 70000'], '443'],
    [['X-Forwarded-Port: 1\tX'], '443'],
    [['X_Forwarded_Port: 8443'], '443'],
    [[], '443'],
  ] as const)(
    "with X-Forwarded-Port from a trusted proxy as %j has the port %s, and keeps the proxy's other claims",
    (lines, port) => {
      const claims = ['Forwarded: for=1', 'True-Client-IP: 1.1.1.1', 'X_Client_IP: 2.2.2.2'];
      const head = request('GET / HTTP/1.1', 'Host: web.localhost', ...claims, 'X-Real-IP: 3.3.3.3', ...lines);
      const forProxied = requestHeadFor(head, { ...OPTIONS, forwardedFor: '203.0.113.7' }).split('\r\n');
      const [forwardedFor, proto, host, , realIp] = FORWARDED;
      const ours = [forwardedFor, proto, host, `X-Forwarded-Port: ${port}`, realIp];
      expect(forProxied.slice(2, -2)).toEqual([...claims, ...ours]);
    },
  );

  it.each([
    [['X-Forwarded-For: a', 'x-forwarded-for:', 'X-Forwarded-For: b, c'], 'a, b, c', null],
    [['X-Forwarded-Proto: HTTPS'], '', 'https'],
    [['X-Forwarded-Proto: https, http'], '', 'http'],
    [['X-Forwarded-Proto: http', 'X-Forwarded-Proto: https'], '', 'https'],
    [['X-Forwarded-Proto: wss', 'X_Forwarded_Proto: https'], '', null],
  ] as const)('is parsed back: %j claims the addresses %j and the protocol %j', (lines, addresses, proto) => {
    const head = request('GET / HTTP/1.1', 'Host: web.localhost', ...lines);
    expect([forwardedForOf(head), forwardedProtoOf(head)]).toEqual([addresses, proto]);
  });

  it('has no hop-by-hop headers', () => {
    const hops = ['Keep-Alive: 5', 'Proxy-Connection: x', 'Proxy-Authorization: x', 'TE: gzip', 'HTTP2-Settings: x'];
    const lines = ['Connection: close, X-Hop', 'A: 1', 'X-Hop: 2', 'B: 3', ...hops, 'Upgrade: websocket'];
    expect(sent('GET / HTTP/1.1', 'Host: web.localhost', ...lines).slice(2)).toEqual(['A: 1', 'B: 3', ...FORWARDED]);
  });

  it('keeps end-to-end headers that Connection names', () => {
    const lines = [
      'Connection: content-length, host, expect, x-forwarded-for',
      'Content-Length: 05',
      'Expect: 100-continue',
    ];
    expect(sent('POST / HTTP/1.1', 'Host: web.localhost', ...lines)).toEqual([
      'POST / HTTP/1.1',
      'Host: web.localhost',
      'Expect: 100-continue',
      ...FORWARDED,
      'Content-Length: 5',
    ]);
  });

  it('appends to X-Forwarded-For, and drops any other client claim in any spelling', () => {
    const claims = ['x-forwarded-for: 1.1.1.1', 'X-Forwarded-For: 2.2.2.2, 3.3.3.3', 'X-FORWARDED-PROTO: gopher'];
    const lookalikes = [
      'X_Forwarded_For: 9.9.9.9',
      'X-Forwarded_Host: evil',
      'X_FORWARDED-PROTO: evil',
      'X-Forwarded-Host: evil',
      'X-Forwarded-Port: 1',
      'X-Real-IP: 9.9.9.9',
      'x_real_ip: 9.9.9.9',
      'Forwarded: for=9.9.9.9',
      'True-Client-IP: 9.9.9.9',
      'True_Client_IP: 9.9.9.9',
      'X-Client-IP: 9.9.9.9',
    ];
    expect(sent('GET / HTTP/1.1', 'Host: web.localhost', ...claims, ...lookalikes).slice(2)).toEqual([
      'X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 203.0.113.7',
      ...FORWARDED.slice(1),
    ]);
  });

  it('keeps chunked framing, an upgrade and TE: trailers', () => {
    const upgrade = [
      'Connection: keep-alive, Upgrade, TE',
      'Upgrade: websocket',
      'TE: trailers, deflate',
      'Transfer-Encoding: CHUNKED',
    ];
    expect(sent('GET / HTTP/1.1', 'Host: web.localhost', ...upgrade).slice(2)).toEqual([
      ...FORWARDED,
      'Transfer-Encoding: chunked',
      'Connection: Upgrade, TE',
      'Upgrade: websocket',
      'TE: trailers',
    ]);
    expect(sent('GET / HTTP/1.1', 'Host: web.localhost', 'TE: trailers').slice(-2)).toEqual([
      'Connection: TE',
      'TE: trailers',
    ]);
  });

  it('is HTTP/1.1 in origin-form with the host of the target', () => {
    const lines = sent(
      'GET http://web.localhost:8000/x HTTP/1.0',
      'Host: other',
      'Expect: 100-continue',
      'TE: trailers',
    );
    expect(lines.slice(0, 2)).toEqual(['GET /x HTTP/1.1', 'Host: web.localhost:8000']);
    expect(lines.slice(2)).toEqual([
      ...FORWARDED.slice(0, 2),
      'X-Forwarded-Host: web.localhost:8000',
      'X-Forwarded-Port: 8000',
      'X-Real-IP: 203.0.113.7',
    ]);
  });

  it('has a rewritten Host if configured, and no value can break a line', () => {
    const head = request('GET / HTTP/1.1', 'Host: web.localhost');
    const hostHeader = { rewrite: 'localhost:3000\r\nX: y' };
    expect(requestHeadFor(head, { ...OPTIONS, hostHeader, visitorAddress: '1.1.1.1\nX: y' })).toBe(
      lined(
        'GET / HTTP/1.1',
        'Host: localhost:3000X: y',
        'X-Forwarded-For: 1.1.1.1X: y',
        ...FORWARDED.slice(1, -1),
        'X-Real-IP: 1.1.1.1X: y',
      ),
    );
  });

  it('is parsed as the same request by our own parser', () => {
    const lines = ['POST /x HTTP/1.1', 'Host: web.localhost', 'Content-Length: 5', 'Connection: x', 'X: 1', 'Y: 2'];
    const again = parseRequestHead(requestHeadFor(request(...lines), OPTIONS));
    expect(again).toMatchObject({
      method: 'POST',
      path: '/x',
      framing: { kind: 'length', length: 5 },
      host: 'web.localhost',
    });
  });
});

const response = (method: string, ...lines: string[]): ResponseHead => {
  const head = parseResponseHead(lined(...lines), { method, upgrade: 'websocket' });
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

describe('the response head for the visitor', () => {
  const NEW = { visitorVersion: '1.1', keepAlive: true } as const;
  const OLD = { visitorVersion: '1.0', keepAlive: true } as const;

  it('has everything except hop-by-hop headers', () => {
    const hops = ['Connection: close, X-Hop', 'Keep-Alive: x', 'X-Hop: 1', 'Proxy-Authenticate: x', 'Upgrade: h2c'];
    const head = response(
      'GET',
      'HTTP/1.0 200 Fine',
      'A: 1',
      ...hops,
      'Set-Cookie: a',
      'Set-Cookie: b',
      'Content-Length: 05',
    );
    expect(responseHeadFor(head, NEW)).toEqual({
      text: lined('HTTP/1.1 200 Fine', 'A: 1', 'Set-Cookie: a', 'Set-Cookie: b', 'Content-Length: 5'),
      framing: { kind: 'length', length: 5 },
      form: 'chunks',
      keepAlive: true,
    });
    expect(endToEndFields(head).map(({ lower }) => lower)).toEqual(['a', 'set-cookie', 'set-cookie']);
  });

  it.each([
    ['GET', 200, 'Transfer-Encoding: chunked', NEW, ['Transfer-Encoding: chunked'], 'chunked', 'chunks', true],
    ['GET', 200, 'Transfer-Encoding: chunked', OLD, ['Connection: close'], 'until-close', 'data', false],
    ['GET', 200, 'X: y', NEW, ['X: y', 'Connection: close'], 'until-close', 'chunks', false],
    ['GET', 200, 'Content-Length: 3', OLD, ['Content-Length: 3', 'Connection: keep-alive'], 'length', 'chunks', true],
    ['HEAD', 200, 'Content-Length: 3', NEW, ['Content-Length: 3'], 'none', 'chunks', true],
    ['HEAD', 200, 'Transfer-Encoding: chunked', NEW, ['Transfer-Encoding: chunked'], 'none', 'chunks', true],
    ['HEAD', 200, 'Transfer-Encoding: chunked', OLD, ['Connection: keep-alive'], 'none', 'chunks', true],
    ['GET', 304, 'Content-Length: 3', NEW, ['Content-Length: 3'], 'none', 'chunks', true],
    ['GET', 204, 'Content-Length: 0', NEW, [], 'none', 'chunks', true],
    ['GET', 103, 'Link: x', NEW, ['Link: x'], 'none', 'chunks', true],
    ['GET', 426, 'Upgrade: a', NEW, ['Connection: close, Upgrade', 'Upgrade: a'], 'until-close', 'chunks', false],
  ] as const)(
    'for %s %i with %s and visitor %j is correct',
    (method, status, line, options, lines, kind, form, keepAlive) => {
      const answer = responseHeadFor(response(method, `HTTP/1.1 ${status} `, line), options);
      expect(answer).toMatchObject({
        text: lined(`HTTP/1.1 ${status} `, ...lines),
        framing: { kind },
        form,
        keepAlive,
      });
    },
  );

  it('has Connection: close if either side closes', () => {
    const head = response('GET', 'HTTP/1.1 200 ', 'Content-Length: 1');
    const { text, keepAlive } = responseHeadFor(head, { visitorVersion: '1.1', keepAlive: false });
    expect([text.includes('Connection: close\r\n'), keepAlive]).toEqual([true, false]);
  });

  it('keeps a switch of protocols', () => {
    const head = response('GET', 'HTTP/1.1 101 Switching', 'Connection: upgrade', 'Upgrade: websocket', 'Sec-A: b');
    expect(responseHeadFor(head, NEW).text).toBe(
      lined('HTTP/1.1 101 Switching', 'Sec-A: b', 'Connection: Upgrade', 'Upgrade: websocket'),
    );
  });

  it('has no interim responses for HTTP/1.0', () => {
    expect(responseHeadFor(response('GET', 'HTTP/1.1 100 Continue'), OLD).text).toBe('');
  });
});
