import { hash as hashOf, scryptSync } from 'node:crypto';
import type { PolicyEvent } from '@tunnel/policy';
import { eventually, FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { POLICY_CACHE_ENTRIES_MAX } from './limits.ts';
import {
  CHECKS,
  createKeyedDigest,
  PASSWORD_KNOWN_MS,
  PasswordChecks,
  type PasswordEffect,
} from './password-checks.ts';
import { hashPassword, isPassword } from './password-hash.ts';

const HASH = '$scrypt$ln=14,r=8,p=1$c2FsdA$aGFzaA';
const RIGHT = { kind: 'password-checked', isRight: true };
const WRONG = { kind: 'password-checked', isRight: false };

const effectOf = (password: string, user = 'ann', hash: string | null = HASH): PasswordEffect => ({
  kind: 'check-password',
  auth: { realm: 'tunnel', users: { ann: HASH } },
  user,
  password,
  hash,
});

const SUBJECT = { policyId: 1, routeKey: 'shop', address: '192.0.2.1', tenant: 'account 1' };
const forever = (): AbortController => new AbortController();

/** Password checks that the test completes by hand. If `right` is given, checks complete at once and accept only this password. */
class Stage {
  readonly clock = new FakeClock();
  readonly begun: string[] = [];
  readonly waiting: ((isRight: boolean) => void)[] = [];
  readonly checks: PasswordChecks;

  constructor(right?: string) {
    this.checks = new PasswordChecks({
      clock: this.clock,
      check: (password, hash) => {
        this.begun.push(password);
        if (right !== undefined) return Promise.resolve(password === right && hash !== null);
        return new Promise((resolve) => this.waiting.push(resolve));
      },
    });
  }

  perform(
    password: string,
    subject: Partial<typeof SUBJECT> = {},
    visitor = forever(),
  ): PolicyEvent | Promise<PolicyEvent> {
    return this.checks.perform(effectOf(password), { ...SUBJECT, ...subject }, visitor);
  }
}

it('a password hash must have the exact scrypt parameters and match completely', async () => {
  const salt = Buffer.from('0123456789abcdef');
  const derived = scryptSync('pässword', salt, 32, { N: 2 ** 14, r: 8, p: 1 });
  const line = (cost: string): string =>
    `$scrypt$${cost}$${salt.toString('base64').replace(/=/g, '')}$${derived.toString('base64').replace(/=/g, '')}`;
  expect(await isPassword('pässword', line('ln=14,r=8,p=1'))).toBe(true);
  expect(await isPassword('password', line('ln=14,r=8,p=1'))).toBe(false);
  expect(await isPassword('pässword', line('ln=4,r=8,p=1'))).toBe(false);
  expect(await isPassword('pässword', null)).toBe(false);
  expect(await isPassword('x', hashPassword('x'))).toBe(true);
});

it('a known password is accepted at once for ten minutes, then checked again', async () => {
  const stage = new Stage('open');
  expect(await stage.perform('open')).toEqual(RIGHT);
  expect(stage.perform('open')).toEqual(RIGHT);
  await stage.clock.advance(PASSWORD_KNOWN_MS);
  const again = stage.perform('open');
  expect(again).toBeInstanceOf(Promise);
  expect(await again).toEqual(RIGHT);
  expect(stage.begun).toHaveLength(2);
  expect(stage.checks.results).toMatchObject({ ok: 2, cached: 1, wrong: 0 });
});

it('a visitor that keeps coming stays known, despite wrong guesses from the same address', async () => {
  const stage = new Stage('open');
  await stage.perform('open');
  for (let minute = 0; minute < 30; minute += 1) {
    for (let at = 0; at < 10; at += 1) await stage.perform(`wrong ${at}`);
    expect(stage.perform('open')).toEqual(RIGHT);
    await stage.clock.advance(60_000);
  }
});

it('a password known under one policy is checked again under another policy', async () => {
  const stage = new Stage('open');
  await stage.perform('open');
  expect(stage.perform('open', { policyId: 2 })).toBeInstanceOf(Promise);
});

it('an unknown user is checked like a known user, and always refused', async () => {
  const stage = new Stage('open');
  expect(await stage.checks.perform(effectOf('open', 'nobody', null), SUBJECT, forever())).toEqual(WRONG);
  expect(stage.begun).toEqual(['open']);
});

it('a wrong password is checked again each time', async () => {
  const stage = new Stage('open');
  await stage.perform('shut');
  await stage.perform('shut');
  expect(stage.begun).toEqual(['shut', 'shut']);
});

it('two checks run at a time and 64 wait; further checks are refused, and known visitors pass', async () => {
  const stage = new Stage();
  const known = stage.perform('open', { address: '192.0.2.9' });
  await eventually(() => expect(stage.waiting).toHaveLength(1));
  stage.waiting.shift()?.(true);
  expect(await known).toEqual(RIGHT);
  const many = CHECKS.atOnce + CHECKS.waitingMax;
  const checks = Array.from({ length: many }, (_, at) => stage.perform(`p${at}`, { address: `10.0.0.${at}` }));
  await eventually(() => expect(stage.waiting).toHaveLength(CHECKS.atOnce));
  const refused = stage.perform('late', { address: '10.0.1.1' });
  expect(refused).toMatchObject({ kind: 'failed', fault: { code: 'POLICY_BUSY' }, retryAfterSecs: 2 });
  expect(stage.perform('open', { address: '10.0.1.1' })).toEqual(RIGHT);
  expect(stage.checks.results.busy).toBe(1);
  for (let ended = 0; ended < many; ended += 1) {
    await eventually(() => expect(stage.waiting).not.toHaveLength(0));
    expect(stage.waiting.length).toBeLessThanOrEqual(CHECKS.atOnce);
    stage.waiting.shift()?.(false);
  }
  for (const check of checks) expect(await check).toEqual(WRONG);
});

it('ten wrong passwords block an address at one tunnel for a minute, but not other tunnels, addresses or known visitors', async () => {
  const stage = new Stage('open');
  for (let at = 0; at < 10; at += 1) expect(await stage.perform(`wrong ${at}`)).toEqual(WRONG);
  const refused = { kind: 'failed', fault: { code: 'POLICY_RATE_LIMITED' }, retryAfterSecs: 60 };
  expect(stage.perform('open')).toMatchObject(refused);
  expect(await stage.perform('open', { routeKey: 'other' })).toEqual(RIGHT);
  expect(await stage.perform('open', { address: '192.0.2.2' })).toEqual(RIGHT);
  // The password is known by now, so guesses from the same address do not block it.
  expect(stage.perform('open')).toEqual(RIGHT);
  await stage.clock.advance(60_000);
  expect(await stage.perform('wrong again')).toEqual(WRONG);
});

it('addresses of one IPv6 network count as one address', async () => {
  const stage = new Stage('open');
  for (let at = 0; at < 10; at += 1) await stage.perform('wrong', { address: `2001:db8::${at}` });
  expect(stage.perform('open', { address: '2001:db8::ffff' })).toMatchObject({
    fault: { code: 'POLICY_RATE_LIMITED' },
  });
});

it('at most ten of 40 simultaneous guesses are checked', async () => {
  const stage = new Stage('open');
  const guesses = Array.from({ length: 40 }, (_, at) => stage.perform(`wrong ${at}`));
  expect(guesses.filter((event) => !(event instanceof Promise))).toHaveLength(30);
  for (const event of guesses) await event;
  expect(stage.begun).toHaveLength(10);
});

it('right passwords never count as failures', async () => {
  const stage = new Stage('open');
  for (let policyId = 0; policyId < 30; policyId += 1) expect(await stage.perform('open', { policyId })).toEqual(RIGHT);
});

it('concurrent requests with the same password share one check', async () => {
  const stage = new Stage();
  const events = [stage.perform('open'), stage.perform('open'), stage.perform('open')];
  await eventually(() => expect(stage.waiting).toHaveLength(1));
  stage.waiting.shift()?.(true);
  for (const event of events) expect(await event).toEqual(RIGHT);
  expect(stage.begun).toHaveLength(1);
});

it('the same password from 1000 addresses is checked once, and no address is blocked', async () => {
  const stage = new Stage();
  const all = Array.from({ length: 1000 }, (_, at) =>
    stage.perform('open', { address: `10.0.${at >> 8}.${at & 255}` }),
  );
  for (const event of all) expect(event).toBeInstanceOf(Promise);
  expect(stage.checks.waiting).toBe(0);
  stage.waiting.shift()?.(true);
  for (const event of all) expect(await event).toEqual(RIGHT);
  expect(stage.begun).toEqual(['open']);
  expect(stage.checks.results).toMatchObject({ ok: 1, busy: 0 });
});

it('a wrong password shared by several addresses counts as a guess of each address', async () => {
  const stage = new Stage();
  for (let at = 0; at < 10; at += 1) {
    const both = [stage.perform(`wrong ${at}`), stage.perform(`wrong ${at}`, { address: '192.0.2.2' })];
    stage.waiting.shift()?.(false);
    for (const event of both) expect(await event).toEqual(WRONG);
  }
  expect(stage.begun).toHaveLength(10);
  // The check runs for another address. An address with too many guesses must not learn the result.
  const other = stage.perform('open', { address: '192.0.2.3' });
  for (const address of ['192.0.2.1', '192.0.2.2'])
    expect(stage.perform('open', { address })).toMatchObject({ fault: { code: 'POLICY_RATE_LIMITED' } });
  stage.waiting.shift()?.(true);
  expect(await other).toEqual(RIGHT);
});

it('a visitor leaving a shared check does not count as a guess, and the other visitors keep waiting', async () => {
  const stage = new Stage();
  const first = [stage.perform('a', { address: '10.0.0.1' }), stage.perform('b', { address: '10.0.0.2' })];
  const stays = stage.perform('open', { address: '10.0.0.3' });
  for (let at = 0; at < 20; at += 1) {
    const visitor = new AbortController();
    const left = stage.perform('open', {}, visitor);
    visitor.abort();
    await left;
    expect(stage.checks.waiting).toBe(1);
  }
  const back = stage.perform('open');
  expect(back).toBeInstanceOf(Promise);
  for (const end of stage.waiting.splice(0)) end(false);
  for (const event of first) await event;
  await eventually(() => expect(stage.waiting).toHaveLength(1));
  stage.waiting.shift()?.(true);
  expect(await stays).toEqual(RIGHT);
  expect(await back).toEqual(RIGHT);
  expect(stage.begun).toEqual(['a', 'b', 'open']);
});

it('a visitor that leaves gives up the place in the queue and does not count as a guess', async () => {
  const stage = new Stage();
  const first = [stage.perform('a', { address: '10.0.0.1' }), stage.perform('b', { address: '10.0.0.2' })];
  await eventually(() => expect(stage.waiting).toHaveLength(2));
  for (let at = 0; at < 20; at += 1) {
    const visitor = new AbortController();
    const left = stage.perform(`c${at}`, {}, visitor);
    expect(stage.checks.waiting).toBe(1);
    visitor.abort();
    await left;
    expect(stage.checks.waiting).toBe(0);
  }
  for (const end of stage.waiting.splice(0)) end(false);
  for (const event of first) await event;
  expect(stage.begun).toEqual(['a', 'b']);
});

it('a failing thread pool refuses every visitor, without counting guesses', async () => {
  const checks = new PasswordChecks({
    clock: new FakeClock(),
    check: () => Promise.reject(new Error('out of memory')),
  });
  for (let at = 0; at < 20; at += 1) {
    const event = await checks.perform(effectOf(`p${at}`), SUBJECT, forever());
    expect(event).toMatchObject({ kind: 'failed', fault: { code: 'POLICY_BUSY' } });
  }
});

it('a flood of wrong passwords at one tenant’s tunnel gives way to visitors of another tenant', async () => {
  const stage = new Stage();
  const evil = (at: number): PolicyEvent | Promise<PolicyEvent> =>
    stage.perform(`wrong ${at}`, { routeKey: 'evil', tenant: 'account 2', address: `10.0.${at >> 8}.${at & 255}` });
  const flood = Array.from({ length: 1000 }, (_, at) => evil(at));
  const waits = flood.filter((event) => event instanceof Promise);
  expect(waits).toHaveLength(CHECKS.atOnce + CHECKS.waitingMax);
  const shop = [stage.perform('open'), stage.perform('shut', { address: '192.0.2.7' })];
  for (const event of shop) expect(event).toBeInstanceOf(Promise);
  expect(stage.checks.waiting).toBe(CHECKS.waitingMax);
  expect(await waits.at(-1)).toMatchObject({ kind: 'failed', fault: { code: 'POLICY_BUSY' } });
  // Two checks of the flood are running. After these, the tenants take turns.
  for (let ended = 0; ended < 5; ended += 1) {
    await eventually(() => expect(stage.waiting.length).toBe(CHECKS.atOnce));
    stage.waiting.shift()?.(stage.begun[ended] === 'open');
  }
  expect(stage.begun.slice(0, 6)).toEqual(['wrong 0', 'wrong 1', 'wrong 2', 'open', 'wrong 3', 'shut']);
  expect(await shop[0]).toEqual(RIGHT);
});

it('known passwords of one tenant do not evict known passwords of another tenant', async () => {
  const stage = new Stage('open');
  await stage.perform('open');
  for (let policyId = 2; policyId < POLICY_CACHE_ENTRIES_MAX + 100; policyId += 1) {
    await stage.perform('open', { policyId, tenant: 'account 2', routeKey: 'evil' });
  }
  expect(stage.perform('open')).toEqual(RIGHT);
});

// ---- keyed digests of passwords ----

const TEXTS = ['', 'a', 'b', 'ab', 'a\0b', 'pässwörd', 'x'.repeat(300), 'x'.repeat(301), '€'.repeat(1000)];

it('a text always has the same digest, and different texts have different digests', () => {
  const digest = createKeyedDigest();
  expect(TEXTS.map(digest)).toEqual(TEXTS.map(digest));
  expect(new Set(TEXTS.map(digest)).size).toBe(TEXTS.length);
});

it('a keyed digest differs from the plain digest of the same text', () => {
  const digest = createKeyedDigest();
  for (const text of TEXTS) expect(digest(text)).not.toBe(hashOf('sha256', text, 'base64url'));
});

it('every keyed digest has a different key', () => {
  expect(createKeyedDigest()('a')).not.toBe(createKeyedDigest()('a'));
});
