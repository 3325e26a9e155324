import { endToEndFields, parseResponseHead, type ResponseHead, renderError, responseHeadFor } from '@tunnel/http1';
import { expect, it } from 'vitest';
import { headerOf } from '../policy.fixture.ts';
import type { ResponseEdit } from '../policy-step.ts';
import { editedEdgeResponse, editedHead } from './response-edits.ts';

const parsed = (status: number, ...lines: string[]): ResponseHead => {
  const head = parseResponseHead(`HTTP/1.1 ${status} X\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`, {
    method: 'GET',
    upgrade: null,
  });
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

const seen = (head: ResponseHead): string[] => {
  const fields = endToEndFields(head).map(({ name, value }) => `${name}: ${value}`);
  const { text } = responseHeadFor(head, { visitorVersion: '1.1', keepAlive: true });
  for (const field of fields) expect(text).toContain(`\r\n${field}\r\n`);
  return fields;
};

const headers = (edit: Partial<Extract<ResponseEdit, { kind: 'headers' }>>): ResponseEdit => ({
  kind: 'headers',
  set: [],
  add: [],
  remove: [],
  ...edit,
});

it('response headers are changed in the order of the rules', () => {
  const head = parsed(200, 'Content-Length: 3', 'X-A: 1', 'X-B: 2', 'Server: old');
  const edits = [
    headers({ set: [['X-A', 'ours']], remove: ['server'] }),
    headers({ add: [['X-A', 'more']], remove: ['x-b'] }),
  ];
  const edited = editedHead(head, edits);
  expect(seen(edited)).toEqual(['X-A: ours', 'X-A: more']);
  expect(edited).toMatchObject({ contentLength: 3, framing: { kind: 'length', length: 3 }, keepAlive: true });
  expect(edited.text).toBe('HTTP/1.1 200 X\r\nContent-Length: 3\r\nX-A: ours\r\nX-A: more\r\n\r\n');
});

it("the service's Connection header does not remove a header that a rule has set", () => {
  const head = parsed(200, 'Content-Length: 0', 'Connection: x-a', 'X-A: 1');
  expect(seen(editedHead(head, [headers({ set: [['X-A', 'ours']] })]))).toEqual(['X-A: ours']);
});

it('CORS headers of the service are removed, whether the rule adds CORS headers or not', () => {
  const head = parsed(
    200,
    'Content-Length: 0',
    'Access-Control-Allow-Origin: *',
    'access-control-expose-headers: a',
    'Vary: Accept',
  );
  expect(seen(editedHead(head, [{ kind: 'cors', fields: [] }]))).toEqual(['Vary: Accept', 'vary: Origin']);
  const fields = [['access-control-allow-origin', 'https://a']] as const;
  const varied = parsed(200, 'Content-Length: 0', 'Vary: accept, ORIGIN');
  expect(seen(editedHead(varied, [{ kind: 'cors', fields }]))).toEqual([
    'Vary: accept, ORIGIN',
    'access-control-allow-origin: https://a',
  ]);
});

it('a response to a signed-in visitor is Cache-Control: private, unless the service sets Cache-Control', () => {
  expect(seen(editedHead(parsed(200, 'Content-Length: 0'), [{ kind: 'private' }]))).toEqual(['cache-control: private']);
  const said = parsed(200, 'Content-Length: 0', 'Cache-Control: public');
  expect(editedHead(said, [{ kind: 'private' }])).toBe(said);
});

it("a service cannot set the edge's login cookies, in any spelling", () => {
  const head = parsed(
    200,
    'Content-Length: 0',
    'Set-Cookie: __Host-tunnel_login=x; Path=/',
    'set-cookie:  tunnel_login = x',
    'Set-Cookie: __HOST-Tunnel_Login_0a1b2c3d=x; Max-Age=0',
    'Set-Cookie: =tunnel_login=planted; Path=/',
    'Set-Cookie: tunnel_login_2=fine',
    'Set-Cookie: sid=1; x=tunnel_login=2',
  );
  const guard: ResponseEdit[] = [{ kind: 'guard-cookies' }];
  expect(seen(editedHead(head, guard))).toEqual([
    'Set-Cookie: tunnel_login_2=fine',
    'Set-Cookie: sid=1; x=tunnel_login=2',
  ]);
  const plain = parsed(200, 'Content-Length: 0', 'Set-Cookie: sid=1');
  expect(editedHead(plain, guard)).toBe(plain);
});

it("interim responses are not edited, but cannot set the edge's login cookies either", () => {
  const head = parsed(103, 'Link: x');
  const set = headers({ set: [['x', '1']] });
  expect(editedHead(head, [set])).toBe(head);
  const early = parsed(103, 'Set-Cookie: tunnel_login=x', 'Link: x');
  expect(seen(editedHead(early, [{ kind: 'guard-cookies' }, set]))).toEqual(['Link: x']);
});

const ERROR = { code: 'TUNNEL_OFFLINE', status: 502, message: 'away', next: 'wait' };

it("the owner's error page replaces the edge's page for browsers; JSON and X-Tunnel-Error stay", () => {
  const page: ResponseEdit[] = [{ kind: 'error-page', body: '<h1>Zurück</h1>' }];
  const html = editedEdgeResponse(renderError({ ...ERROR, accept: 'text/html' }), page);
  expect(html).toMatchObject({ status: 502, body: '<h1>Zur\xc3\xbcck</h1>' });
  expect(headerOf(html.headers, 'x-tunnel-error')).toBe('TUNNEL_OFFLINE');
  expect(headerOf(html.headers, 'content-security-policy')).toBeNull();
  const json = renderError({ ...ERROR, accept: 'application/json' });
  expect(editedEdgeResponse(json, page)).toBe(json);
  const denied = renderError({ ...ERROR, status: 403, accept: null });
  expect(editedEdgeResponse(denied, page)).toBe(denied);
  const own = { status: 503, headers: [['content-type', 'text/html']] as const, body: 'closed' };
  expect(editedEdgeResponse(own, page)).toBe(own);
});

it('responses of the edge get the response headers of rules, and keep their login cookies', () => {
  const own = {
    status: 302,
    headers: [
      ['set-cookie', '__Host-tunnel_login=x'],
      ['server', 'a'],
    ] as const,
    body: '',
  };
  const edited = editedEdgeResponse(own, [
    { kind: 'guard-cookies' },
    headers({ set: [['X-Frame-Options', 'DENY']], remove: ['server'] }),
    { kind: 'private' },
  ]);
  expect(edited.headers).toEqual([
    ['set-cookie', '__Host-tunnel_login=x'],
    ['x-frame-options', 'DENY'],
    ['cache-control', 'private'],
  ]);
});
