// The policy driver as used by the gate: every effect has an event, synchronously where possible. The driver never rejects, and no
// failure lets a request in.
import { PassThrough } from 'node:stream';
import type { JwtAuth, PolicyEffect, PolicyEvent } from '@tunnel/policy';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ConnectionAuthCache } from './connection-auth-cache.ts';
import { driverOf, policyWith } from './driver.fixture.ts';
import { OddProvider } from './odd-provider.fixture.ts';
import type { EffectSubject, PolicyDriver } from './policy-driver.ts';

type DriverEffect = Exclude<PolicyEffect, { kind: 'hold-body' }>;

const LOGIN = { provider: 'nobody', session_secs: 3600, trusted_origins: [] };
const SUBJECT: EffectSubject = {
  served: {},
  policy: policyWith(LOGIN),
  routeKey: 'shop',
  owner: 'operator',
  tenant: 'operator tun_a',
  host: 'shop.example.com',
  scheme: 'https',
  publicUrl: 'https://shop.example.com',
  address: '192.0.2.1',
};
const forever = (): AbortController => new AbortController();

let clock: FakeClock;
let driver: PolicyDriver;
let provider: OddProvider | undefined;

beforeEach(() => {
  clock = new FakeClock();
  driver = driverOf(clock, {
    checkPassword: (password, hash) => Promise.resolve(password === 'open' && hash !== null),
  });
});

afterEach(async () => {
  driver.close();
  expect(clock.pendingTimers).toBe(0);
  await provider?.stop();
  provider = undefined;
});

const perform = (effect: DriverEffect, subject: Partial<EffectSubject> = {}): PolicyEvent | Promise<PolicyEvent> =>
  driver.perform(effect, { ...SUBJECT, ...subject }, forever());

const password = (text: string): DriverEffect => ({
  kind: 'check-password',
  auth: { realm: 'tunnel', users: {} },
  user: 'ann',
  password: text,
  hash: '$scrypt$',
});

const token = (): DriverEffect => ({
  kind: 'take-token',
  rule: { list: 'tunnel', index: 1, name: null, action: 'rate_limit' },
  key: 'x',
  requests: 1,
  perSecs: 60,
  burst: 1,
});

it('a connection remembers a right password, counts it as cached, and forgets it under another policy', async () => {
  const visitor = { signal: forever().signal, authCache: new ConnectionAuthCache() };
  const effect = password('open');
  const ask = (subject: Partial<EffectSubject> = {}) => driver.perform(effect, { ...SUBJECT, ...subject }, visitor);
  const right = { kind: 'password-checked', isRight: true };
  expect(await ask()).toEqual(right);
  for (let times = 1; times <= 3; times += 1) {
    expect(ask()).toEqual(right);
    expect(driver.metrics.passwordChecks.cached).toBe(times);
  }
  expect(ask({ served: {} })).toBeInstanceOf(Promise);
  expect(await driver.perform(password('shut'), SUBJECT, visitor)).toEqual({ ...right, isRight: false });
});

it('a rate limit is decided synchronously', () => {
  expect(perform(token())).toEqual({ kind: 'token-taken', retryAfterSecs: null });
  expect(perform(token())).toEqual({ kind: 'token-taken', retryAfterSecs: 60 });
  expect(driver.metrics.limiterKeys).toBe(1);
});

it('known passwords and limits are forgotten with their policy', async () => {
  expect(await perform(password('open'))).toEqual({ kind: 'password-checked', isRight: true });
  expect(perform(password('open'))).not.toBeInstanceOf(Promise);
  await perform(token());
  driver.forget(SUBJECT.served);
  expect(driver.metrics.limiterKeys).toBe(0);
  expect(perform(password('open'))).toBeInstanceOf(Promise);
  expect(perform(token())).toEqual({ kind: 'token-taken', retryAfterSecs: null });
});

it('a replacing policy starts without known passwords, even before the old policy is forgotten', async () => {
  await perform(password('open'));
  expect(perform(password('open'), { served: {} })).toBeInstanceOf(Promise);
});

it('password checks are counted by result', async () => {
  await perform(password('open'));
  await perform(password('open'));
  await perform(password('wrong'));
  expect(driver.metrics.passwordChecks).toEqual({ ok: 1, wrong: 1, cached: 1, busy: 0 });
});

it('a token is verified with its issuer’s keys; private addresses are allowed for the operator’s issuers only', async () => {
  provider = await OddProvider.start({ now: () => clock.now() });
  const auth: JwtAuth = { issuer: provider.issuer, audience: ['api'] };
  const exp = Math.floor(clock.now() / 1000) + 60;
  const text = await provider.token({ iss: provider.issuer, aud: 'api', sub: 'bot', exp });
  driver.close();
  const rule = { auth: { token_header: 'x-tunnel-token', jwt: auth } };
  driver = driverOf(clock, { allowPrivate: false, operatorPolicy: { login: null, rules: [rule] } });
  expect(await perform({ kind: 'verify-jwt', auth, token: text })).toMatchObject({ claims: { sub: 'bot' } });
  expect(perform({ kind: 'verify-jwt', auth, token: text })).not.toBeInstanceOf(Promise);
  const refused = await perform({ kind: 'verify-jwt', auth: { ...auth }, token: text });
  expect(refused).toMatchObject({ kind: 'failed', fault: { code: 'POLICY_PROVIDER_AWAY' } });
  expect(driver.metrics.providerRequests).toMatchObject({ ok: 2, refused: 1 });
});

it('an internal error refuses the request and reveals nothing', async () => {
  const broken: EffectSubject = Object.defineProperty({ ...SUBJECT }, 'served', {
    get: () => {
      throw new Error('s3cret');
    },
  });
  const effects: DriverEffect[] = [
    token(),
    password('open'),
    { kind: 'verify-jwt', auth: { issuer: 'not a URL', audience: [] }, token: 'x.y.z' },
    { kind: 'open-cookie', login: LOGIN, sealed: ['x'] },
    { kind: 'begin-login', login: LOGIN, returnPath: '/' },
    { kind: 'finish-login', login: LOGIN, query: '?state=x', pending: new Map() },
  ];
  for (const effect of effects) {
    const event = await driver.perform(effect, broken, forever());
    expect([effect.kind, event.kind]).toEqual([effect.kind, 'failed']);
    expect(JSON.stringify(event)).not.toContain('s3cret');
  }
});

it('the log has the reason of a provider failure, but no text from the provider’s response', async () => {
  provider = await OddProvider.start({ now: () => clock.now() });
  provider.odd.metadata = 'broken';
  driver.close();
  const stream = new PassThrough();
  const logger = createLogger({ format: 'json', stream });
  driver = driverOf(clock, { logger });
  const auth = { issuer: provider.issuer, audience: ['api'] };
  const exp = Math.floor(clock.now() / 1000) + 60;
  await perform({ kind: 'verify-jwt', auth, token: await provider.token({ exp }) });
  await logger.flush();
  const lines = String(stream.read());
  expect(lines).toContain('it answered 500');
  expect(lines).not.toContain('s3cret');
});

it('made-up hosts at one tunnel do not multiply log lines', async () => {
  provider = await OddProvider.start({ now: () => clock.now() });
  provider.odd.metadata = 'broken';
  driver.close();
  const stream = new PassThrough();
  const logger = createLogger({ format: 'json', stream });
  driver = driverOf(clock, { logger });
  const auth = { issuer: provider.issuer, audience: ['api'] };
  const exp = Math.floor(clock.now() / 1000) + 60;
  const effect = { kind: 'verify-jwt', auth, token: await provider.token({ exp }) } as const;
  for (let at = 0; at < 20; at += 1) await perform(effect, { host: `${at}.example.com` });
  await logger.flush();
  expect(String(stream.read()).trim().split('\n')).toHaveLength(1);
});

it('10,000 wrong passwords from 1,000 addresses do not delay a known visitor', async () => {
  await perform(password('open'));
  for (let round = 0; round < 10; round += 1) {
    const wrong = Array.from({ length: 1000 }, (_, at) =>
      perform(password(`wrong ${round} ${at}`), { address: `10.0.${at >> 8}.${at & 255}` }),
    );
    expect(perform(password('open'))).toEqual({ kind: 'password-checked', isRight: true });
    for (const event of wrong) await event;
  }
  const { ok, wrong, cached, busy } = driver.metrics.passwordChecks;
  expect({ ok, cached }).toEqual({ ok: 1, cached: 10 });
  expect(wrong + busy).toBe(10_000);
});
