import { parseRequestHead, type RequestHead, requestFieldsFor, requestHeadFor } from '@tunnel/http1';
import { expect, it } from 'vitest';
import { headOf, requestOf } from '../policy.fixture.ts';
import type { RequestChanges } from '../policy-step.ts';
import { isChangeableHeader } from '../schema/policy-values.ts';
import { applyRequestChanges } from './apply-request-changes.ts';

const NO_CHANGES: RequestChanges = {
  path: null,
  service: null,
  remove: [],
  removeSpellings: [],
  cookie: null,
  set: [],
  add: [],
  maxBody: null,
};
const VISITOR = { visitorAddress: '192.0.2.1', proto: 'https', hostHeader: 'keep' } as const;

const parsed = (...lines: string[]): RequestHead => {
  const head = parseRequestHead(`${lines.join('\r\n')}\r\n\r\n`);
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

/** Returns the header lines for the service, without lines added by the edge. */
const seen = (head: RequestHead): string[] =>
  requestHeadFor(head, VISITOR)
    .split('\r\n')
    .filter((line) => line !== '' && !/^(?:X-Forwarded|X-Real-IP|Host)/.test(line));

it('a request head without changes stays the same object', () => {
  const head = parsed('GET / HTTP/1.1', 'Host: a');
  expect(applyRequestChanges(head, { ...NO_CHANGES, service: 'api', maxBody: 5 })).toBe(head);
});

it('request headers are removed, set and added, and the path is replaced', () => {
  const head = parsed('GET /old HTTP/1.1', 'Host: a', 'X-A: 1', 'x-a: 2', 'X-B: 3', 'Accept:*/*');
  const changed = applyRequestChanges(head, {
    ...NO_CHANGES,
    path: '/new?q',
    remove: ['x-b'],
    set: [['X-A', 'ours']],
    add: [['Accept', 'text/html']],
  });
  expect(seen(changed)).toEqual(['GET /new?q HTTP/1.1', 'Accept:*/*', 'X-A: ours', 'Accept: text/html']);
  expect(changed.text).toBe('GET /new?q HTTP/1.1\r\nHost: a\r\nAccept:*/*\r\nX-A: ours\r\nAccept: text/html\r\n\r\n');
});

it("a visitor's own X-Tunnel-User header is removed in every spelling", () => {
  const head = parsed(
    'GET / HTTP/1.1',
    'Host: a',
    'X-Tunnel-User: root',
    'x_tunnel_user: root',
    'X-Tunnel_User: root',
    'X-Tunnel: 1',
  );
  const changed = applyRequestChanges(head, {
    ...NO_CHANGES,
    removeSpellings: ['x-tunnel-user'],
    set: [['X-Tunnel-User', 'anna']],
  });
  expect(seen(changed)).toEqual(['GET / HTTP/1.1', 'X-Tunnel: 1', 'X-Tunnel-User: anna']);
});

it('a header that a rule sets or removes does not reach the service in another spelling from the visitor', () => {
  const head = parsed(
    'GET / HTTP/1.1',
    'Host: a',
    'X_User: root',
    'x-User: root',
    'X_Debug: 1',
    'X_Other: 2',
    'XUser: 3',
  );
  const changed = applyRequestChanges(head, {
    ...NO_CHANGES,
    remove: ['x-debug'],
    set: [['X-User', 'anna']],
    add: [['X-Other', '4']],
  });
  expect(seen(changed)).toEqual(['GET / HTTP/1.1', 'X_Other: 2', 'XUser: 3', 'X-User: anna', 'X-Other: 4']);
  const underscored = applyRequestChanges(head, { ...NO_CHANGES, set: [['x_user', 'anna']] });
  expect(seen(underscored)).toContain('x-User: root');
});

it('a visitor cannot remove a header that a rule has set by naming it in Connection, here or in a replay', () => {
  const head = parsed('GET / HTTP/1.1', 'Host: a', 'Connection: X-Tunnel-User, x-a, close', 'X-A: 1', 'X-B: 2');
  const changed = applyRequestChanges(head, {
    ...NO_CHANGES,
    set: [['X-Tunnel-User', 'anna']],
    add: [['X-A', 'ours']],
  });
  expect(seen(changed)).toEqual(['GET / HTTP/1.1', 'X-B: 2', 'X-Tunnel-User: anna', 'X-A: ours']);
  expect(changed.keepAlive).toBe(false);
  const again = parseRequestHead(changed.text);
  expect(again.kind === 'request' ? seen(again) : again).toEqual(seen(changed));
});

it('an upgrade request stays an upgrade request', () => {
  const head = parsed('GET / HTTP/1.1', 'Host: a', 'Connection: Upgrade, x-a', 'Upgrade: websocket', 'x-a: 1');
  const changed = applyRequestChanges(head, { ...NO_CHANGES, remove: ['x-b'] });
  expect(seen(changed)).toEqual(['GET / HTTP/1.1', 'Connection: Upgrade', 'Upgrade: websocket']);
  expect(changed.text).toContain('Connection: Upgrade\r\nUpgrade: websocket\r\n');
});

it('several Cookie headers become one, or none if no cookie is left', () => {
  const head = parsed('GET / HTTP/1.1', 'Host: a', 'Cookie: a=1', 'X: 1', 'Cookie: b=2');
  expect(seen(applyRequestChanges(head, { ...NO_CHANGES, cookie: 'a=1; b=2' }))).toEqual([
    'GET / HTTP/1.1',
    'Cookie: a=1; b=2',
    'X: 1',
  ]);
  expect(seen(applyRequestChanges(head, { ...NO_CHANGES, cookie: '' }))).toEqual(['GET / HTTP/1.1', 'X: 1']);
});

it('a request target with a host keeps that host', () => {
  const head = parsed('GET http://b/x HTTP/1.1', 'Host: a', 'X: 1');
  const changed = applyRequestChanges(head, { ...NO_CHANGES, remove: ['x'] });
  expect(changed.text).toBe('GET /x HTTP/1.1\r\nHost: b\r\n\r\n');
  expect(requestHeadFor(changed, VISITOR)).toContain('Host: b\r\n');
});

it('a request body keeps its framing', () => {
  const head = parsed('POST / HTTP/1.1', 'Host: a', 'Content-Length: 0005', 'X: 1');
  const changed = applyRequestChanges(head, { ...NO_CHANGES, remove: ['x', 'content-length'] });
  expect(changed.framing).toEqual({ kind: 'length', length: 5 });
  expect(seen(changed)).toEqual(['POST / HTTP/1.1', 'Content-Length: 5']);
});

it('an HTTP/2 request head is changed in the same way', () => {
  const head = headOf(
    requestOf({
      path: '/x',
      headers: [
        ['x-a', '1'],
        ['x_tunnel_user', 'root'],
        ['cookie', 'a=1'],
      ],
    }),
  );
  const changed = applyRequestChanges(head, {
    ...NO_CHANGES,
    path: '/y',
    cookie: '',
    removeSpellings: ['x-tunnel-user'],
    set: [['X-Tunnel-User', 'anna']],
  });
  const { path, fields } = requestFieldsFor(changed, VISITOR);
  const own = fields.filter(({ lower }) => !lower.startsWith('x-forwarded') && lower !== 'x-real-ip');
  expect([path, ...own.map(({ lower, value }) => `${lower}: ${value}`)]).toEqual([
    '/y',
    'x-a: 1',
    'x-tunnel-user: anna',
  ]);
});

it.each([
  ...[
    'Accept',
    'Authorization',
    'Cookie',
    'Date',
    'Forwarded',
    'Origin',
    'True-Client-IP',
    'Via',
    'X-Client-IP',
    'x_client_ip',
  ],
  ...['Sec-WebSocket-Protocol', 'X-Request-Id', 'User-Agent', 'Content-Type'],
])('a header that a rule may set reaches the service: %s', (name) => {
  expect(isChangeableHeader(name)).toBe(true);
  const head = parsed('GET / HTTP/1.1', 'Host: a', `${name}: of the visitor`, `Connection: ${name}`);
  expect(seen(applyRequestChanges(head, { ...NO_CHANGES, set: [[name, 'of the rule']] }))).toEqual([
    'GET / HTTP/1.1',
    `${name}: of the rule`,
  ]);
});

it('a rule cannot set a header that the edge writes or drops', () => {
  const names = [
    'X-Real-IP',
    'X_Real_IP',
    'X-Forwarded-For',
    'X_Forwarded_Proto',
    'TE',
    'Keep-Alive',
    'Proxy-Connection',
  ];
  for (const name of names) {
    expect([name, isChangeableHeader(name)]).toEqual([name, false]);
    const head = applyRequestChanges(parsed('GET / HTTP/1.1', 'Host: a'), {
      ...NO_CHANGES,
      set: [[name, 'of the rule']],
    });
    expect(requestHeadFor(head, VISITOR)).not.toContain('of the rule\r\n');
  }
});
