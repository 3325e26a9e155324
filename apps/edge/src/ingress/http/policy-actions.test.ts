// Every policy action over HTTP/1.1 and over HTTP/2: the answer to the visitor and the request at the service. A rejected request never
// reaches the service and is not counted.
import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Rule } from '@tunnel/policy';
import { hashOf } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { basic, basicAuth } from '../../policy/policy.fixture.ts';
import { type PolicyStand, startPolicyStand, VERSIONS } from './policy-stand.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const TOKEN = 'a-token-of-twenty-characters';
const SECRET = 'whsec of the sender';
const tokenAuth = {
  auth: {
    token_header: 'x-tunnel-token',
    tokens: [{ name: 'ci', sha256: createHash('sha256').update(TOKEN).digest('hex') }],
  },
} satisfies Rule;
const github: Rule = { verify_webhook: { provider: 'github', secrets: [SECRET], max_bytes: 1024 } };
const signed = (body: string, secret = SECRET): Record<string, string> => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
});

/** Headers of the last request at the service. */
const seen: { headers: IncomingMessage['headers'] } = { headers: {} };

const start = async (
  rules: readonly Rule[],
  more: Parameters<typeof startPolicyStand>[1] = {},
): Promise<PolicyStand> => {
  const stand = await startPolicyStand(rules, {
    listener: (request, response) => {
      seen.headers = request.headers;
      response.setHeader('x-service', 'yes');
      response.end('served');
    },
    perform: (effect) =>
      effect.kind === 'check-password'
        ? { kind: 'password-checked', isRight: effect.password === 'right' && effect.hash !== null }
        : { kind: 'body-too-large' },
    ...more,
  });
  cleanups.push(() => stand.stop());
  return stand;
};

const expectUntouched = ({ service, http }: PolicyStand): void => {
  expect(service.asked).toEqual([]);
  const { requests, bytes, openConnections } = http.tunnel.counters;
  expect([requests, bytes, openConnections, http.dials, http.ingress.totals.requests]).toEqual([0, 0, 0, 0, 0]);
};

describe.each(VERSIONS)('%s', (version) => {
  it.each<[string, readonly Rule[], string, number, string | null]>([
    ['deny', [{ deny: 403 }], '/', 403, 'POLICY_DENIED'],
    ['deny with a status', [{ deny: 451 }], '/', 451, 'POLICY_DENIED'],
    ['allow_addresses', [{ allow_addresses: ['192.0.2.0/24'] }], '/', 403, 'POLICY_DENIED'],
    ['auth', [basicAuth], '/', 401, 'POLICY_UNAUTHENTICATED'],
    [
      'rate_limit',
      [{ rate_limit: { requests: 1, per_secs: 60, burst: 1, by: 'tunnel' } }, { deny: 403 }],
      '/',
      429,
      null,
    ],
    ['redirect', [{ redirect: { to: 'https://{host}/new{path}', status: 308 } }], '/a?b=1', 308, null],
    ['respond', [{ respond: { status: 503, body: 'later', content_type: 'text/plain' } }], '/', 503, null],
    ['respond without a body', [{ respond: { status: 204, body: '', content_type: 'text/plain' } }], '/', 204, null],
    ['verify_webhook', [github], '/', 403, 'POLICY_WEBHOOK_REFUSED'],
  ])(
    '%s: the visitor gets the answer of the rule, and the request reaches no service and no counter',
    async (_, rules, path, status, code) => {
      const stand = await start(rules);
      const isLimited = status === 429;
      const answer = isLimited
        ? (
            await Promise.all([stand.visit(version, path), stand.visit(version, path), stand.visit(version, path)])
          ).find((one) => one.status === 429)
        : await stand.visit(version, path);
      expect(answer?.status).toBe(status);
      if (code !== null) expect(answer?.headers['x-tunnel-error']).toBe(code);
      if (isLimited) expect(Number(answer?.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expectUntouched(stand);
    },
  );

  it('auth: a password or token lets a visitor in, is not passed on, and the service gets the user name', async () => {
    const stand = await start([{ auth: { ...basicAuth.auth, ...tokenAuth.auth } }]);
    const byPassword = await stand.visit(version, '/', {
      headers: { authorization: basic('me', 'right'), 'x-tunnel-user': 'root', 'x_tunnel-user': 'root' },
    });
    expect([byPassword.status, byPassword.body]).toEqual([200, 'served']);
    expect(seen.headers).toMatchObject({ 'x-tunnel-user': 'me', 'x-tunnel-auth': 'basic' });
    expect(seen.headers).not.toHaveProperty('authorization');
    expect(seen.headers).not.toHaveProperty('x_tunnel-user');
    const byToken = await stand.visit(version, '/', { headers: { 'x-tunnel-token': TOKEN } });
    expect(byToken.status).toBe(200);
    expect(seen.headers).toMatchObject({ 'x-tunnel-user': 'ci', 'x-tunnel-auth': 'token' });
    expect(seen.headers).not.toHaveProperty('x-tunnel-token');
    const refused = await stand.visit(version, '/', { headers: { authorization: basic('me', 'wrong') } });
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).toContain('Basic');
    expect(stand.service.asked).toHaveLength(2);
  });

  it('allow ends the rules; rewrite, request_headers and response_headers change requests and responses', async () => {
    const stand = await start([
      { match: { path: ['/open/**'] }, allow: true },
      { rewrite: { strip_prefix: '/api', add_prefix: '/v2' } },
      { request_headers: { set: { 'x-from': '{address} {path}' }, remove: ['x-odd'] } },
      { response_headers: { set: { 'x-frame-options': 'DENY' }, remove: ['x-service'] } },
      { match: { path: ['/no'] }, deny: 403 },
    ]);
    const open = await stand.visit(version, '/open/x', { headers: { 'x-odd': '1' } });
    expect([open.status, open.headers['x-service'], seen.headers['x-odd']]).toEqual([200, 'yes', '1']);
    const changed = await stand.visit(version, '/api/x?y=1', { headers: { 'x-odd': '1' } });
    expect(changed.headers['x-frame-options']).toBe('DENY');
    expect(changed.headers).not.toHaveProperty('x-service');
    expect(stand.service.asked.map(({ url }) => url)).toEqual(['/open/x', '/v2/x?y=1']);
    expect(seen.headers).toMatchObject({ 'x-from': '127.0.0.1 /api/x' });
    expect(seen.headers).not.toHaveProperty('x-odd');
    // Response header changes of earlier rules also apply to answers of later rules.
    const denied = await stand.visit(version, '/no');
    expect([denied.status, denied.headers['x-frame-options']]).toEqual([403, 'DENY']);
  });

  it('cors: the edge answers a preflight and replaces the CORS fields of the service', async () => {
    const origin = 'https://app.example';
    const cors: Rule = { cors: { origins: [origin], methods: ['GET', 'PUT'], credentials: true, max_age_secs: 600 } };
    const stand = await start([cors], {
      listener: (_request, response) => {
        response.setHeader('access-control-allow-origin', '*');
        response.end('served');
      },
    });
    const preflight = await stand.visit(version, '/', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'PUT' },
    });
    expect([preflight.status, preflight.headers['access-control-allow-origin'], preflight.body]).toEqual([
      204,
      origin,
      '',
    ]);
    expect(preflight.headers).not.toHaveProperty('content-length');
    expectUntouched(stand);
    const passed = await stand.visit(version, '/', { headers: { origin } });
    expect(passed.headers).toMatchObject({
      'access-control-allow-origin': origin,
      vary: expect.stringContaining('Origin'),
    });
  });

  it('verify_webhook: a signed body is passed on unchanged; a wrong signature gets 403, a large body 413', async () => {
    const stand = await start([github]);
    const body = JSON.stringify({ hook: 'x'.repeat(700) });
    for (const isChunked of [false, true]) {
      const answer = await stand.visit(version, '/hook', { method: 'POST', body, isChunked, headers: signed(body) });
      expect([answer.status, answer.body]).toEqual([200, 'served']);
    }
    const wrong = await stand.visit(version, '/hook', { method: 'POST', body, headers: signed(body, 'another') });
    expect([wrong.status, wrong.headers['x-tunnel-error']]).toEqual([403, 'POLICY_WEBHOOK_REFUSED']);
    const large = 'x'.repeat(1025);
    for (const isChunked of [false, true]) {
      const refused = await stand.visit(version, '/hook', {
        method: 'POST',
        body: large,
        isChunked,
        headers: signed(large),
      });
      expect([refused.status, refused.headers['x-tunnel-error']]).toEqual([413, 'POLICY_BODY_TOO_LARGE']);
    }
    expect(stand.service.asked.map(({ bodyHash }) => bodyHash)).toEqual([
      hashOf(Buffer.from(body)),
      hashOf(Buffer.from(body)),
    ]);
    expect(stand.heldBodies.bytes).toBe(0);
  });

  it('verify_webhook: a held body of several megabytes reaches the service whole', async () => {
    const stand = await start([
      { verify_webhook: { provider: 'github', secrets: [SECRET], max_bytes: 4 * 1024 * 1024 } },
    ]);
    const body = 'abcdefgh'.repeat(400_000);
    const answer = await stand.visit(version, '/', { method: 'POST', body, headers: signed(body) });
    expect([answer.status, stand.service.asked[0]?.bodyHash]).toEqual([200, hashOf(Buffer.from(body))]);
    expect(stand.heldBodies.bytes).toBe(0);
  });

  it('max_body: a body over the limit gets 413, at once if its length is known', async () => {
    const stand = await start([{ max_body: 2000 }, { max_body: 1000 }]);
    const answered = (): number => stand.policy.current?.counts.answered[1] ?? 0;
    const before = answered();
    const known = await stand.visit(version, '/', { method: 'POST', body: 'x'.repeat(1001) });
    expect([known.status, known.headers['x-tunnel-error']]).toEqual([413, 'POLICY_BODY_TOO_LARGE']);
    expectUntouched(stand);
    const unknown = await stand.visit(version, '/', { method: 'POST', body: 'x'.repeat(100_000), isChunked: true });
    expect([unknown.status, unknown.headers['x-tunnel-error']]).toEqual([413, 'POLICY_BODY_TOO_LARGE']);
    // The service never got a whole request: the max_body rule answered both times.
    expect(stand.service.asked).toEqual([]);
    expect([...stand.gate.answers.values()]).toEqual([{ action: 'max_body', status: 413, count: 2 }]);
    expect(answered() - before).toBe(2);
    const good = await stand.visit(version, '/', { method: 'POST', body: 'x'.repeat(1000), isChunked: true });
    expect([good.status, stand.service.asked[0]?.bodyHash]).toEqual([200, hashOf(Buffer.from('x'.repeat(1000)))]);
  });

  it('error_page: browsers get the page of the owner, programs get JSON, and both get the error code', async () => {
    const stand = await start([{ error_page: { body: '<h1>Back soon, é</h1>' } }]);
    stand.http.localPort = 1;
    const browser = await stand.visit(version, '/', { headers: { accept: 'text/html' } });
    expect([browser.status, browser.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_UNREACHABLE']);
    expect(Buffer.from(browser.body, 'latin1').toString()).toBe('<h1>Back soon, é</h1>');
    const program = await stand.visit(version, '/', { headers: { accept: 'application/json' } });
    expect(JSON.parse(program.body)).toMatchObject({ code: 'LOCAL_UNREACHABLE' });
  });

  it('HEAD: the answer of a rule has the head of a GET and no body', async () => {
    const stand = await start([{ respond: { status: 200, body: 'words', content_type: 'text/plain' } }]);
    const head = await stand.visit(version, '/', { method: 'HEAD' });
    expect([head.status, head.headers['content-length'], head.body]).toEqual([200, '5', '']);
    expectUntouched(stand);
  });

  it('operator rules run first, and an allow rule of a tunnel does not skip them', async () => {
    const stand = await start([{ allow: true }], { operator: [{ match: { path: ['/no/**'] }, deny: 403 }] });
    expect((await stand.visit(version, '/no/x')).status).toBe(403);
    expectUntouched(stand);
    expect((await stand.visit(version, '/yes')).status).toBe(200);
  });

  it('captures name the rule that rejected a request, and a served request is captured without its token', async () => {
    const stand = await start([tokenAuth]);
    await stand.visit(version, '/in?a=1', { headers: { 'x-tunnel-token': TOKEN } });
    await stand.visit(version, '/out', { headers: { 'x-tunnel-token': 'not-the-one' } });
    const { recorders } = stand.captures.list('tun_1', 10);
    const [out, passed] = recorders;
    expect(out?.policy).toEqual({
      answered_by: { index: 1, name: null, action: 'auth' },
      matched: [1],
      user: null,
    });
    expect([out?.status, out?.fault, out?.askedPath]).toEqual([401, 'POLICY_UNAUTHENTICATED', '/out']);
    expect(out?.secretFields).toEqual(['x-tunnel-token']);
    expect(passed?.policy).toEqual({ answered_by: null, matched: [1], user: 'ci' });
    expect(passed?.requestText).not.toContain(TOKEN);
    expect(passed?.requestText).toMatch(/x-tunnel-user: ci/i);
  });
});
