// The request text of a capture after rules have changed the request: the text at the service, computed from the original request.

import { type RequestHead, requestHeadFromParts } from '@tunnel/http1';
import { applyRequestChanges, type RequestChanges } from '@tunnel/policy';
import { expect, it } from 'vitest';
import { captureStore, captureTunnel, requestHead } from './capture.fixture.ts';
import { servedText } from './recorder.ts';

const SECRET = 'Basic YW5uYTpzZWNyZXQ=';
const changes: RequestChanges = {
  path: '/v2/x?q=1',
  service: null,
  remove: ['authorization'],
  removeSpellings: ['x-tunnel-user'],
  cookie: 'b=2',
  set: [['X-Tunnel-User', 'anna']],
  add: [['X-Env', 'live']],
  maxBody: null,
};

const fromParts = (count: number): RequestHead => {
  const many = Array.from({ length: count }, (_, at): [string, string] => [`x-${at}`, ' a ']);
  const headers: [string, string][] = [
    ['authorization', SECRET],
    ['x_tunnel_user', 'root'],
    ['cookie', 'tunnel_login=1; b=2'],
    ['te', 'trailers'],
    ...many,
  ];
  const head = requestHeadFromParts({ method: 'POST', path: '/x?q=1', authority: 'web.test', headers, hasBody: true });
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

it.each([
  [
    'HTTP/1.1',
    requestHead('GET /x?q=1', `Authorization: ${SECRET}`, 'Connection: x-a, close', 'X-A: 1', 'Cookie: a=1; b=2'),
  ],
  ['a target that names its host', requestHead('GET http://other.test/x', `Authorization: ${SECRET}`)],
  ['HTTP/2', fromParts(0)],
  ['as many fields of HTTP/2 as there may be', fromParts(95)],
])('a capture shows the request exactly as the service got it, without the removed secret: %s', (_, head) => {
  const served = servedText(head.text, changes);
  expect(served).toBe(applyRequestChanges(head, changes).text);
  expect(served).not.toContain(SECRET);
  expect(served).toContain('X-Tunnel-User: anna\r\n');
});

it('an unreadable head is shown as empty text', () => {
  expect(servedText('no head', changes)).toBe('');
});

it('a capture stores the original request and the changes, shows the served request, and counts both', () => {
  const { store } = captureStore();
  const head = requestHead('GET /x', `Authorization: ${SECRET}`);
  const plain = store.begin(captureTunnel('tun_web'), head, 0, 'data');
  const policy = { answered_by: null, matched: [1], user: 'anna' };
  const rules = { policy, askedPath: '/x', secretFields: [], changes };
  const ruled = store.begin(captureTunnel('tun_web'), head, 0, 'data', { rules });
  expect(plain?.requestText).toBe(head.text);
  expect(ruled?.requestText).toBe(applyRequestChanges(head, changes).text);
  expect((ruled?.keptBytes ?? 0) - (plain?.keptBytes ?? 0)).toBe('/v2/x?q=1b=2X-Tunnel-UserannaX-Envlive'.length);
  expect(store.bytes).toBe((ruled?.keptBytes ?? 0) + (plain?.keptBytes ?? 0));
});
