import { describe, expect, it } from 'vitest';
import { fieldValueOf } from './fields.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';

const text = (requestLine: string, ...lines: string[]): string => [requestLine, ...lines, '', ''].join('\r\n');

const parsed = (requestLine: string, ...lines: string[]): RequestHead => {
  const head = parseRequestHead(text(requestLine, ...lines));
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

const get = (...lines: string[]): RequestHead => parsed('GET / HTTP/1.1', 'Host: web.localhost', ...lines);

describe('a request head', () => {
  it('is parsed into the values that routing and framing need', () => {
    const head = parsed(
      'POST /a/b?c=d HTTP/1.1',
      'Host: Web.Localhost:8000',
      'Content-Length: 5',
      'X-A:  b c\t ',
      'x-a:',
    );
    expect(head).toMatchObject({
      method: 'POST',
      target: '/a/b?c=d',
      path: '/a/b?c=d',
      version: '1.1',
      host: 'web.localhost',
      authority: 'Web.Localhost:8000',
      framing: { kind: 'length', length: 5 },
      keepAlive: true,
      upgrade: null,
      expectContinue: false,
    });
    expect(head.headers.map(({ name, lower, value }) => [name, lower, value])).toEqual([
      ['Host', 'host', 'Web.Localhost:8000'],
      ['Content-Length', 'content-length', '5'],
      ['X-A', 'x-a', 'b c'],
      ['x-a', 'x-a', ''],
    ]);
    expect(fieldValueOf(head.headers, 'x-a')).toBe('b c');
    expect(fieldValueOf(head.headers, 'x-b')).toBeNull();
  });

  it.each(['GET', 'get', 'M-SEARCH', 'PURGE', "!#$%&'*+-.^_`|~0z"])('can have the method %s', (method) => {
    expect(parsed(`${method} / HTTP/1.1`, 'Host: a').method).toBe(method);
  });

  it('keeps non-ASCII bytes in values', () => {
    expect(get('X: \x80\xff').headers[1]?.value).toBe('\x80\xff');
  });

  it('needs exactly one empty line at its end', () => {
    expect(parseRequestHead('')).toMatchObject({ status: 400 });
    expect(parseRequestHead('\r\n\r\n')).toMatchObject({ status: 400 });
    expect(parseRequestHead('GET / HTTP/1.1\r\nHost: a\r\n')).toMatchObject({ status: 400 });
    expect(parseRequestHead(`${text('GET / HTTP/1.1', 'Host: a')}X: y\r\n\r\n`)).toMatchObject({ status: 400 });
  });

  it('has a limited number of headers', () => {
    const lines = Array.from({ length: 127 }, () => 'X: y');
    expect(get(...lines).headers).toHaveLength(128);
    expect(parseRequestHead(text('GET / HTTP/1.1', 'Host: a', 'X: y'), { fieldsMax: 1 })).toMatchObject({
      status: 431,
    });
  });

  it('is refused if a character does not fit into a byte', () => {
    expect(parseRequestHead(text('GET / HTTP/1.1', 'Host: a', 'X: \u{20ac}'))).toMatchObject({ status: 400 });
    expect(parseRequestHead(text('GET /\u0100 HTTP/1.1', 'Host: a'))).toMatchObject({ status: 400 });
  });
});

describe('the request target', () => {
  it.each([
    ['GET', 'http://web.localhost:8000/x?y', '/x?y', 'web.localhost', 'web.localhost:8000'],
    ['GET', 'HTTPS://Web.Localhost', '/', 'web.localhost', 'Web.Localhost'],
    ['GET', 'http://web.localhost?x', '/?x', 'web.localhost', 'web.localhost'],
    ['OPTIONS', 'http://web.localhost', '*', 'web.localhost', 'web.localhost'],
    ['GET', 'http://[::1]:80/', '/', '[::1]', '[::1]:80'],
  ])('of %s %s overrides Host and becomes %s', (method, target, path, host, authority) => {
    expect(parsed(`${method} ${target} HTTP/1.1`, 'Host: other')).toMatchObject({ target, path, host, authority });
  });

  it.each(['/', '//x', '/a|b{c}^`"<>\\', '/%00', '/?a?b', '/..;/x'])('%s is passed on unchanged', (target) => {
    expect(parsed(`GET ${target} HTTP/1.1`, 'Host: a').path).toBe(target);
  });

  it('can be * for OPTIONS', () => {
    expect(parsed('OPTIONS * HTTP/1.1', 'Host: a').path).toBe('*');
  });
});

describe('the host of a request', () => {
  it.each([
    ['a', 'a'],
    ['A.B-c_d.', 'a.b-c_d.'],
    ['a:', 'a'],
    ['a:65535', 'a'],
    ['127.0.0.1:80', '127.0.0.1'],
    ['[2001:DB8::1]:80', '[2001:db8::1]'],
    ['[::ffff:1.2.3.4]', '[::ffff:1.2.3.4]'],
  ])('%s is parsed as %s', (authority, host) => {
    expect(parsed('GET / HTTP/1.1', `Host: ${authority}`)).toMatchObject({ host, authority });
  });

  it('can be missing in HTTP/1.0', () => {
    expect(parsed('GET / HTTP/1.0')).toMatchObject({ host: '', authority: '', version: '1.0' });
  });
});

describe("a request's connection", () => {
  it.each([
    ['1.1', [], true],
    ['1.1', ['Connection: close'], false],
    ['1.1', ['Connection: Close'], false],
    ['1.1', ['Connection: keep-alive, close'], false],
    ['1.1', ['Connection: keep-alive', 'Connection: x, CLOSE'], false],
    ['1.1', ['Connection: closed'], true],
    ['1.0', [], false],
    ['1.0', ['Connection: Keep-Alive'], true],
    ['1.0', ['Connection: keep-alive, close'], false],
  ])('of HTTP/%s with %j is kept alive: %s', (version, lines, keepAlive) => {
    expect(parsed(`GET / HTTP/${version}`, 'Host: a', ...lines).keepAlive).toBe(keepAlive);
  });

  it('lists its hop-by-hop headers in lower case, up to a limit', () => {
    expect(get('Connection: close, X-A ,, x-b').connectionNames).toEqual(['x-a', 'x-b']);
    const many = Array.from({ length: 40 }, (_, index) => `x${index}`).join(',');
    expect(parseRequestHead(text('GET / HTTP/1.1', 'Host: a', `Connection: ${many}`))).toMatchObject({ status: 400 });
  });

  it.each([
    [['Connection: Upgrade', 'Upgrade: websocket'], 'websocket'],
    [['Connection: keep-alive, upgrade', 'Upgrade: a/1', 'Upgrade: b'], 'a/1, b'],
    [['Upgrade: websocket'], null],
    [['Connection: upgrade'], null],
    [['Connection: upgrade', 'Upgrade:'], null],
    [['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AA'], null],
    [['Connection: Upgrade', 'Upgrade: H2C, websocket'], 'websocket'],
  ])('with %j requests an upgrade to %s', (lines, upgrade) => {
    expect(get(...lines).upgrade).toBe(upgrade);
  });

  it('of HTTP/1.0 ignores Upgrade and Expect: 100-continue', () => {
    const lines = ['Host: a', 'Connection: upgrade', 'Upgrade: websocket', 'Expect: 100-continue'];
    expect(parsed('GET / HTTP/1.0', ...lines)).toMatchObject({ upgrade: null, expectContinue: false });
    expect(parsed('GET / HTTP/1.1', ...lines)).toMatchObject({ upgrade: 'websocket', expectContinue: true });
  });
});

describe('the framing of a request', () => {
  it.each([
    [[], { kind: 'none' }],
    [['Content-Length: 0'], { kind: 'length', length: 0 }],
    [['Content-Length:  007 '], { kind: 'length', length: 7 }],
    [['Content-Length: 9007199254740991'], { kind: 'length', length: Number.MAX_SAFE_INTEGER }],
    [['Transfer-Encoding: Chunked'], { kind: 'chunked' }],
  ])('with %j is %j', (lines, framing) => {
    expect(get(...lines).framing).toEqual(framing);
  });
});
