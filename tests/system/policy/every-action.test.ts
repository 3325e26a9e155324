// Tests of every policy action over HTTP/1.1 and HTTP/2: in a single tunnel, in a group of three, and after the death of a member. The
// responses are the same, and no rejected request ever reaches a service.
import { createHmac } from 'node:crypto';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { type Harness, it } from '../in-process.fixture.ts';
import {
  type Ask,
  type GuardedWeb,
  HOOK_SECRET,
  memberGone,
  ORIGIN,
  PASSWORD,
  startGuardedWeb,
  TOKEN,
  VERSIONS,
  visitorOf,
} from './guarded-web.fixture.ts';

const basic = (password: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`me:${password}`).toString('base64')}`,
});
const signature = (body: string): Record<string, string> => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', HOOK_SECRET).update(body).digest('hex')}`,
});
const codeOf = ({ headers }: Awaited<ReturnType<Ask>>): unknown => headers['x-tunnel-error'];

/** Expects the rejection of every kind of stranger, including a wrong password, of which ten are allowed per minute. */
const expectTurnedAway = async (ask: Ask): Promise<void> => {
  expect((await ask('/auth/x', { headers: basic('a wrong one') })).status).toBe(401);
  await expectStrangersOut(ask);
};

const expectStrangersOut = async (ask: Ask): Promise<void> => {
  expect(codeOf(await ask('/deny/x'))).toBe('POLICY_DENIED');
  expect((await ask('/gone/x')).status).toBe(410);
  expect((await ask('/office/x')).status).toBe(403);
  const unknown = await ask('/auth/x');
  expect([unknown.status, codeOf(unknown)]).toEqual([401, 'POLICY_UNAUTHENTICATED']);
  expect(unknown.headers['www-authenticate']).toContain('Basic');
  expect((await ask('/auth/x', { headers: { 'x-tunnel-token': 'a-token-that-is-not-the-one' } })).status).toBe(401);
  const forged = await ask('/hook/x', { method: 'POST', body: 'forged', headers: signature('another') });
  expect([forged.status, codeOf(forged)]).toEqual([403, 'POLICY_WEBHOOK_REFUSED']);
  const large = 'x'.repeat(1025);
  const tooLarge = await ask('/small/x', { method: 'POST', body: large, headers: { 'content-length': '1025' } });
  expect([tooLarge.status, codeOf(tooLarge)]).toEqual([413, 'POLICY_BODY_TOO_LARGE']);
  const moved = await ask('/moved/x?a=1');
  expect([moved.status, moved.headers.location]).toEqual([307, '/new?a=1']);
  const said = await ask('/said/x');
  expect([said.status, said.text, codeOf(said)]).toEqual([503, 'Back at noon', undefined]);
  const preflight = await ask('/cors/x', {
    method: 'OPTIONS',
    headers: { origin: ORIGIN, 'access-control-request-method': 'PUT' },
  });
  expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([204, ORIGIN]);
  const head = await ask('/said/x', { method: 'HEAD' });
  expect([head.status, head.headers['content-length'], head.text]).toEqual([503, '12', '']);
};

/** Expects allowed requests to pass, and checks the request at the service and the response at the visitor. */
const expectServed = async (ask: Ask, { reached }: GuardedWeb): Promise<void> => {
  const last = () => reached.at(-1)!;
  expect((await ask('/allow/x')).text).toBe('own /allow/x');
  expect((await ask('/auth/x', { headers: basic(PASSWORD) })).status).toBe(200);
  expect(last().headers).toMatchObject({ 'x-tunnel-user': 'me', 'x-tunnel-auth': 'basic' });
  expect(last().headers).not.toHaveProperty('authorization');
  expect((await ask('/auth/x', { headers: { 'x-tunnel-token': TOKEN, 'x-tunnel-user': 'root' } })).status).toBe(200);
  expect(last().headers).toMatchObject({ 'x-tunnel-user': 'ci', 'x-tunnel-auth': 'token' });
  expect(last().headers).not.toHaveProperty('x-tunnel-token');
  const hook = JSON.stringify({ pushed: 'y'.repeat(50_000) });
  expect((await ask('/hook/x', { method: 'POST', body: hook, headers: signature(hook) })).status).toBe(200);
  expect(last().body).toBe(hook);
  expect((await ask('/small/x', { method: 'POST', body: 'x'.repeat(1024) })).status).toBe(200);
  expect((await ask('/rewrite/a?b=1')).text).toBe('own /v2/a?b=1');
  expect((await ask('/route/a')).text).toBe('api /route/a');
  await ask('/told/x', { headers: { 'x-odd': '1' } });
  expect(last().headers['x-told']).toMatch(/^127\.0\.0\.1 /);
  expect(last().headers).not.toHaveProperty('x-odd');
  expect((await ask('/framed/x')).headers['x-frame-options']).toBe('DENY');
  const crossed = await ask('/cors/x', { headers: { origin: ORIGIN } });
  expect(crossed.headers['access-control-allow-origin']).toBe(ORIGIN);
};

const FORBIDDEN = /^\/(?:deny|gone|office|moved|said)\//;

const expectNobodyGotThrough = ({ reached }: GuardedWeb): void => {
  expect(reached.filter(({ url }) => FORBIDDEN.test(url))).toEqual([]);
  expect(reached.filter(({ body }) => body === 'forged')).toEqual([]);
  expect(reached.filter(({ method, url }) => method === 'OPTIONS' && url.startsWith('/cors'))).toEqual([]);
};

const tls = async (harness: Harness) => harness.stack({ tls: true, tables: '[load_balancing]\nenabled = true' });

it('every policy action of a single tunnel gives the same response over HTTP/1.1 and HTTP/2, and rejected requests are not counted', async ({
  harness,
}) => {
  const stack = await tls(harness);
  const web = await startGuardedWeb(harness, stack, 1);
  for (const version of VERSIONS) await expectTurnedAway(visitorOf(harness, web.endpoint, version));
  expect(web.reached).toEqual([]);
  const [row] = await stack.tunnels();
  expect(row).toMatchObject({ request_count: 0, bytes_proxied: 0 });
  for (const version of VERSIONS) await expectServed(visitorOf(harness, web.endpoint, version), web);
  const limits = [];
  const ask = visitorOf(harness, web.endpoint, 'HTTP/2');
  for (let n = 0; n < 4; n += 1) limits.push((await ask('/limit/x')).status);
  expect(limits).toEqual([200, 200, 429, 429]);
  expectNobodyGotThrough(web);
  await web.stopServices();
  const page = await ask('/allow/x', { headers: { accept: 'text/html' } });
  expect(page.status).toBe(502);
  const down = await ask('/', { headers: { accept: 'text/html' } });
  expect([down.status, down.text, codeOf(down)]).toEqual([502, '<h1>Back soon</h1>', 'LOCAL_UNREACHABLE']);
});

it('every policy action of a group of three gives the same response, even after the death of a member', async ({
  harness,
}) => {
  const stack = await tls(harness);
  const web = await startGuardedWeb(harness, stack, 3);
  const visitors = VERSIONS.map((version) => visitorOf(harness, web.endpoint, version));
  for (const ask of visitors) await expectTurnedAway(ask);
  expect(web.reached).toEqual([]);
  for (const ask of visitors) await expectServed(ask, web);
  await web.members[0]!.kill();
  await memberGone(stack, 2);
  for (const ask of visitors) {
    await expectTurnedAway(ask);
    await expectServed(ask, web);
  }
  expectNobodyGotThrough(web);
});

it('while a member of three dies, strangers get the same rejections over HTTP/1.1 and HTTP/2, and reach no service', async ({
  harness,
}) => {
  const stack = await tls(harness);
  const web = await startGuardedWeb(harness, stack, 3);
  const visitors = VERSIONS.map((version) => visitorOf(harness, web.endpoint, version));
  let isOver = false;
  const rounds = visitors.map(() => 0);
  const loops = visitors.map(async (ask, nth) => {
    while (!isOver) {
      await expectStrangersOut(ask);
      rounds[nth] = (rounds[nth] ?? 0) + 1;
    }
  });
  const more = async (): Promise<void> => {
    const before = [...rounds];
    // A loop ends with an error after an unexpected response, and the wait ends as well.
    const seen = eventually(() => expect(rounds.every((count, nth) => count > (before[nth] ?? 0))).toBe(true));
    await Promise.race([seen, Promise.all(loops)]);
  };
  await more();
  await web.members[0]!.kill();
  await more();
  await memberGone(stack, 2);
  await more();
  isOver = true;
  await Promise.all(loops);
  expect(web.reached).toEqual([]);
  for (const ask of visitors) await expectServed(ask, web);
});
