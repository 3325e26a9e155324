// Credentials of visitors end at the edge. The service never sees them, in any field, spelling or trailer, however the visitor was let
// in.
import { createHash, createHmac } from 'node:crypto';
import * as http from 'node:http';
import { connect } from 'node:net';
import type { Rule } from '@tunnel/policy';
import { afterEach, describe, expect, it } from 'vitest';
import { ConnectionAuthCache } from '../../policy/connection-auth-cache.ts';
import { basic, basicAuth } from '../../policy/policy.fixture.ts';
import { talk } from './http.fixture.ts';
import { ask, visitHttp2 } from './https.fixture.ts';
import { type PolicyStand, startPolicyStand, VERSIONS, type Version } from './policy-stand.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const TOKEN = 'a-token-of-twenty-characters';
const SECRET = 'whsec of the sender';
const tokens = (header: string): Rule => ({
  auth: {
    token_header: header,
    tokens: [{ name: 'ci', sha256: createHash('sha256').update(TOKEN).digest('hex') }],
  },
});

/** Starts a stand with a record of the names and values in the requests at the service, unchanged. */
const start = async (rules: readonly Rule[]): Promise<PolicyStand & { readonly raw: string[][] }> => {
  const raw: string[][] = [];
  const stand = await startPolicyStand(rules, {
    listener: (request, response) => {
      raw.push([...request.rawHeaders, ...request.rawTrailers]);
      response.end('served');
    },
    perform: (effect) => ({ kind: 'password-checked', isRight: 'password' in effect && effect.password === 'right' }),
  });
  cleanups.push(() => stand.stop());
  return { ...stand, raw };
};

type Fields = Readonly<Record<string, string>>;

const post = (stand: PolicyStand, version: Version, headers: Fields, trailers: Fields): Promise<number> =>
  version === 'HTTP/1.1' ? postHttp1(stand, headers, trailers) : postHttp2(stand, headers, trailers);

const postHttp1 = (stand: PolicyStand, headers: Fields, trailers: Fields): Promise<number> =>
  new Promise((resolve, reject) => {
    const request = http.request({
      host: '127.0.0.1',
      port: stand.https.http.port,
      method: 'POST',
      agent: false,
      headers: { host: 'web.localhost', 'transfer-encoding': 'chunked', ...headers },
    });
    request.on('response', (response) => resolve(response.resume().statusCode ?? 0)).on('error', reject);
    request.write('body');
    request.addTrailers(trailers);
    request.end();
  });

const postHttp2 = async (stand: PolicyStand, headers: Fields, trailers: Fields): Promise<number> => {
  const session = visitHttp2(stand.https);
  try {
    return (await ask(session, { ':method': 'POST', ...headers }, 'body', trailers)).status;
  } finally {
    session.close();
  }
};

const signature = `sha256=${createHmac('sha256', SECRET).update('body').digest('hex')}`;
const HELD: Rule = { verify_webhook: { provider: 'github', secrets: [SECRET], max_bytes: 1024 } };

describe.each(VERSIONS)('%s', (version) => {
  it.each<[string, string, readonly Rule[], string]>([
    ['the usual name', 'x-tunnel-token', [], 'X-Tunnel-Token'],
    ['a name of the owner’s', 'x-api-key', [], 'x_api_key'],
    ['a body that was held', 'x-api-key', [HELD], 'X-Api-Key'],
    ['an open path', 'x-api-key', [{ match: { method: ['POST'] }, allow: true }], 'X-Api-Key'],
  ])('a token in a trailer does not reach the service: %s', async (_what, header, before, spelled) => {
    const stand = await start([...before, tokens(header)]);
    const sent = { 'x-hub-signature-256': signature, [header]: TOKEN };
    expect(await post(stand, version, sent, { [spelled.toLowerCase()]: TOKEN, 'x-check': 'kept' })).toBe(200);
    expect(stand.raw.flat()).toContain('kept');
    expect(JSON.stringify(stand.raw)).not.toContain(TOKEN);
  });

  it.each<[string, Fields, string]>([
    ['a token', { 'x-tunnel-token': TOKEN }, '/'],
    ['an open path', {}, '/open/x'],
  ])(
    'a password for the edge does not reach the service, but other passwords do, beside %s',
    async (_what, more, path) => {
      const open: Rule = { match: { path: ['/open/**'] }, allow: true };
      const { auth } = tokens('x-tunnel-token') as Extract<Rule, { auth: unknown }>;
      const stand = await start([open, { auth: { ...auth, ...basicAuth.auth } }]);
      const authorization = basic('me', 'right');
      expect((await stand.visit(version, path, { headers: { ...more, authorization } })).status).toBe(200);
      expect(JSON.stringify(stand.raw)).not.toContain(authorization);
      const own = basic('somebody of the service', 'x');
      expect((await stand.visit(version, path, { headers: { ...more, authorization: own } })).status).toBe(200);
      expect(stand.raw.at(-1)).toContain(own);
    },
  );

  it.each<[string, readonly Rule[] | null]>([
    ['with an auth', [tokens('x-tunnel-token')]],
    ['with rules of another kind', [{ request_headers: { set: { 'x-a': '1' } } }]],
    ['with none that is about it', [{ match: { path: ['/no'] }, deny: 403 }]],
    ['without rules', null],
  ])('cookies of the edge do not reach a service %s, in any field and spelling', async (_what, rules) => {
    const stand = await start(rules ?? []);
    if (rules === null) stand.policy.current = null;
    const planted = ['__Host-tunnel_login=PLANTED', 'TUNNEL_LOGIN=PLANTED', 'tunnel_login_0a1b2c3d="PLANTED"'];
    for (const [at, cookie] of [planted.join(';'), `a=1;   ${planted.join('  ;')};;b=2`, `${planted[0]}`].entries()) {
      const headers = { 'x-tunnel-token': TOKEN, cookie };
      expect((await stand.visit(version, '/', { headers })).status).toBe(200);
      const got = stand.raw.at(-1) ?? [];
      expect(got.join()).not.toContain('PLANTED');
      expect(got.includes('a=1; b=2')).toBe(at === 1);
    }
  });
});

it('a cookie of the edge in one of several HTTP/2 cookie fields does not reach the service', async () => {
  const stand = await start([tokens('x-tunnel-token')]);
  const session = visitHttp2(stand.https);
  await ask(session, { 'x-tunnel-token': TOKEN, cookie: ['a=1', '__Host-tunnel_login=PLANTED', 'b=2'] });
  session.close();
  const [got = []] = stand.raw;
  expect(got.join()).not.toContain('PLANTED');
  expect(got).toContain('a=1; b=2');
});

it('a rule about Host applies to an absolute target and to other spellings of the host', async () => {
  const stand = await start([{ match: { header: { host: ['web.localhost'] } }, deny: 403 }]);
  const { port } = stand.https.http;
  const told = async (target: string, host: string): Promise<string> => {
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    let text = '';
    for await (const piece of socket) text += String(piece);
    return text.slice(9, 12);
  };
  expect(await told('/', 'web.localhost')).toBe('403');
  expect(await told('http://web.localhost/', 'other.localhost')).toBe('403');
  expect(await told('/', 'WEB.localhost:80')).toBe('403');
  expect(stand.raw).toEqual([]);
});

it('remembered credentials belong to one connection: later requests share them, other connections do not', async () => {
  const caches: unknown[] = [];
  const stand = await startPolicyStand([basicAuth], {
    perform: (_effect, _subject, { authCache }) => {
      caches.push(authCache);
      return { kind: 'password-checked', isRight: true };
    },
  });
  cleanups.push(() => stand.stop());
  for (const connection of [1, 2]) {
    const session = visitHttp2(stand.https);
    cleanups.push(() => session.destroy());
    for (const path of ['/a', '/b']) {
      const { status } = await ask(session, { ':path': path, authorization: basic('me', 'right') });
      expect(status, `HTTP/2 connection ${connection}`).toBe(200);
    }
  }
  const authorized = (connection: string): string =>
    `GET / HTTP/1.1\r\nHost: web.localhost\r\nAuthorization: ${basic('me', 'right')}\r\nConnection: ${connection}\r\n\r\n`;
  const kept = await talk(stand.http.port, ['keep-alive', 'close'].map(authorized).join(''));
  expect(kept.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  expect(caches).toHaveLength(6);
  expect(caches.every((authCache) => authCache instanceof ConnectionAuthCache)).toBe(true);
  expect([caches[1], caches[3], caches[5]]).toEqual([caches[0], caches[2], caches[4]]);
  expect(new Set(caches).size).toBe(3);
});
