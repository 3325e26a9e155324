import { describe, expect, it } from 'vitest';
import {
  type ErrorWords,
  edgeResponseText,
  reasonOf,
  redirectToHttps,
  redirectToPages,
  renderError,
} from './edge-response.ts';
import { parseRequestHead } from './request-head.ts';

const WORDS: ErrorWords = {
  code: 'TUNNEL_UNKNOWN',
  status: 404,
  message: 'there is no tunnel at web.localhost',
  next: 'Check the address; if it is right, ask its owner to start the tunnel.',
  accept: 'text/html',
};

describe('an error response of the edge', () => {
  it.each([
    [null, 'text/html; charset=utf-8'],
    ['*/*', 'text/html; charset=utf-8'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text/html; charset=utf-8'],
    ['text/html, application/json', 'text/html; charset=utf-8'],
    ['application/json;q=0.5, text/html', 'text/html; charset=utf-8'],
    ['application/json;q=0', 'text/html; charset=utf-8'],
    ['application/json', 'application/json'],
    ['Application/JSON; charset=utf-8', 'application/json'],
    ['application/problem+json', 'application/json'],
    ['application/json, text/plain, */*', 'application/json'],
    ['text/html;q=0.5, application/json', 'application/json'],
    ['application/json;q=9', 'text/html; charset=utf-8'],
  ])('for Accept: %s is of type %s', (accept, contentType) => {
    const { contentType: given, headers } = renderError({ ...WORDS, accept });
    expect(given).toBe(contentType);
    expect(headers).toContainEqual(['content-type', contentType]);
    expect(headers).toContainEqual(['x-tunnel-error', 'TUNNEL_UNKNOWN']);
  });

  it('is a page that says what happened and who can fix it, without external resources', () => {
    const { body, headers } = renderError({ ...WORDS, requestId: 'req_1', retryAfterSecs: 1.2 });
    expect(body).toContain('<h1>There is no tunnel at web.localhost.</h1>');
    expect(body).toContain('ask its owner to start the tunnel.');
    expect(body).toContain('display:grid;place-items:center;');
    expect(body).toContain('TUNNEL_UNKNOWN &middot; request req_1');
    expect(body).not.toMatch(/https?:|src=|<script|url\(/);
    expect(headers).toContainEqual(['retry-after', '2']);
    expect(headers).toContainEqual(['x-request-id', 'req_1']);
  });

  const HOSTILE = '<script>alert("x")</script>\r\n&\'\u{1f4a3}\u00e4\0';

  it('has a heading with a capital letter, except for an email address', () => {
    const headingOf = (message: string) => /<h1>(.*)<\/h1>/.exec(renderError({ ...WORDS, message }).body)?.[1];
    expect(headingOf('no tunnel is here')).toBe('No tunnel is here.');
    expect(headingOf('eve@elsewhere.example may not visit')).toBe('eve@elsewhere.example may not visit.');
  });

  it('shows no text as markup, and is pure ASCII', () => {
    const hostile = { ...WORDS, code: 'A', message: HOSTILE, next: HOSTILE, requestId: HOSTILE };
    const { body } = renderError(hostile);
    expect(body).not.toContain('<script');
    expect(body).toContain('&#60;script&#62;alert(&#34;x&#34;)');
    expect(body).toContain('&#128163;&#228;&#0;');
    const json = renderError({ ...hostile, accept: 'application/json' }).body;
    for (const text of [body, json]) expect(text).toMatch(/^[\n\x20-\x7e]*$/);
    expect(json).not.toContain('<');
    expect(JSON.parse(json)).toEqual({ error: HOSTILE, code: 'A', next: HOSTILE, request_id: HOSTILE });
  });
});

describe('a response written by the edge', () => {
  const response = { status: 404, headers: [['a', 'b'] as const], body: 'hello' };

  it.each([
    [{ keepAlive: true, visitorVersion: '1.1', isHead: false } as const, 'a: b\r\ncontent-length: 5\r\n\r\nhello'],
    [{ keepAlive: true, visitorVersion: '1.1', isHead: true } as const, 'a: b\r\ncontent-length: 5\r\n\r\n'],
    [
      { keepAlive: false, visitorVersion: '1.1', isHead: false } as const,
      'a: b\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello',
    ],
    [
      { keepAlive: true, visitorVersion: '1.0', isHead: false } as const,
      'a: b\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\nhello',
    ],
  ])('is complete: %j', (options, rest) => {
    expect(edgeResponseText(response, options)).toBe(`HTTP/1.1 404 Not Found\r\n${rest}`);
  });

  it('drops headers that would break the head', () => {
    const headers = [['a', 'b\r\nc: d'] as const, ['e\r\n', 'f'] as const];
    const options = { keepAlive: true, visitorVersion: '1.1', isHead: false } as const;
    expect(edgeResponseText({ status: 299, headers, body: '' }, options)).toBe(
      'HTTP/1.1 299 \r\ncontent-length: 0\r\n\r\n',
    );
    expect(reasonOf(502)).toBe('Bad Gateway');
  });
});

describe('the redirect to https', () => {
  it.each([
    ['web.localhost', '/a?b', 8443, 'https://web.localhost:8443/a?b'],
    ['web.localhost', '//evil.example', 443, 'https://web.localhost//evil.example'],
    ['[::1]', '*', 443, 'https://[::1]/'],
  ])('for %s %s has the https port %s', (host, path, port, location) => {
    expect(redirectToHttps({ host, path }, port)).toEqual({ status: 308, headers: [['location', location]], body: '' });
  });
});

describe('the response of a rule', () => {
  const options = { keepAlive: true, visitorVersion: '1.1', isHead: false } as const;

  it.each([
    [204, 'HTTP/1.1 204 No Content\r\nx-a: 1\r\n\r\n'],
    [205, 'HTTP/1.1 205 Reset Content\r\nx-a: 1\r\ncontent-length: 0\r\n\r\n'],
    [304, 'HTTP/1.1 304 Not Modified\r\nx-a: 1\r\n\r\n'],
    [200, 'HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: 5\r\n\r\nwords'],
  ])('with status %i has no body that a client could read as the next response', (status, text) => {
    expect(edgeResponseText({ status, headers: [['x-a', '1']], body: 'words' }, options)).toBe(text);
  });
});

describe("the redirect to the platform's pages", () => {
  const PAGES = 'https://console.example.net/base/';
  const HTML = 'text/html,application/xhtml+xml,*/*;q=0.8';
  const leads = (request: string, url = PAGES, accept = HTML): string | null => {
    const head = parseRequestHead(`${request}\r\n${accept === '' ? '' : `Accept: ${accept}\r\n`}\r\n`);
    if (head.kind === 'problem') throw new Error(head.reason);
    return redirectToPages(head, url)?.headers.find(([name]) => name === 'location')?.[1] ?? null;
  };
  const get = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}`;

  it.each([
    get('edge.test'),
    get('edge.test:8000'),
    get('EDGE.test.'),
    get('evil.example'),
    'HEAD / HTTP/1.1\r\nHost: edge.test',
    'GET / HTTP/1.0\r\nHost: edge.test',
    'GET http://edge.test/ HTTP/1.1\r\nHost: evil.example',
    'GET / HTTP/1.1\r\nHost: edge.test\r\nX-Forwarded-Host: evil.example',
  ])('always goes to the configured URL: %j', (request) => {
    expect(leads(request)).toBe(PAGES);
  });

  it.each([
    'POST / HTTP/1.1\r\nHost: edge.test',
    'OPTIONS * HTTP/1.1\r\nHost: edge.test',
    'GET /x HTTP/1.1\r\nHost: edge.test',
    'GET // HTTP/1.1\r\nHost: edge.test',
    'GET //evil.example HTTP/1.1\r\nHost: edge.test',
    'GET /?next=//evil.example HTTP/1.1\r\nHost: edge.test',
  ])('is only for the front page: %j', (request) => {
    expect(leads(request)).toBeNull();
  });

  it.each(['', '*/*', 'application/json', 'text/*', 'text/html;q=0', 'xtext/html', 'text/htmlx'])(
    'is only for browsers, not for Accept: %j',
    (accept) => {
      expect(leads(get('edge.test'), PAGES, accept)).toBeNull();
    },
  );

  it.each([
    ['edge.test', 'https://edge.test/'],
    ['edge.test:443', 'https://edge.test/'],
    ['edge.test:80', 'http://edge.test/'],
    ['Edge.Test.', 'https://edge.test/'],
    ['localhost:8080', 'http://localhost:8080/'],
  ])('never forms a loop: %s at %s', (host, url) => {
    expect(leads(get(host), url)).toBeNull();
  });

  it('can go from one port of a host to another', () => {
    expect(leads(get('localhost:8000'), 'http://localhost:8080/')).toBe('http://localhost:8080/');
  });
});
