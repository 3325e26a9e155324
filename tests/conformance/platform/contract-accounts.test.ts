// Contract rows about accounts: email addresses, passwords, errors, and our additions to the specification.
import { passwordChanged, type UserSession, userPublic, userSessions } from '@tunnel/contract';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, refusalOf } from './api-request.fixture.ts';
import { newEmail, onSharedPlatform, PASSWORD, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';

/** Hash of PASSWORD that takes a tenth of the usual work. */
const CHEAP_HASH = '$argon2id$v=19$m=64,t=1,p=1$JhwLow0+bV0FY45079hoEw$LpA0fez3SOCEPFkf1vLu9MqtqRP+FNpCvYXA11Vzy7w';

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
beforeAll(async () => {
  ann = await harness.person();
});

const verifiedWith = async (password: string): Promise<string> => {
  const email = newEmail();
  expect((await harness.post('/auth/register', { email, password })).status).toBe(201);
  await harness.get(`/auth/verify-email/${await harness.mailedToken(email)}`);
  return email;
};
const hashOf = async (email: string): Promise<string> => {
  const user = harness.db.selectFrom('users').select('password_hash').where('email', '=', email);
  return (await user.executeTakeFirstOrThrow()).password_hash ?? '';
};
const timed = async (ask: () => Promise<Answer>): Promise<number> => {
  const began = performance.now();
  await ask();
  return performance.now() - began;
};
const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

describe('Contract', () => {
  it(row('Contract', 1), async () => {
    const { body } = await harness.get('/auth/me', ann.token);
    expect(userPublic.parse(body)).toMatchObject({ status: 'active', auth_method: 'password' });
    for (const status of ['asleep', '']) {
      const change = harness.db
        .updateTable('users')
        .set({ status: status as 'active' })
        .where('id', '=', ann.id);
      await expect(change.execute()).rejects.toThrow(/check constraint/);
    }
  });

  it(row('Contract', 2), async () => {
    const email = newEmail();
    await harness.post('/auth/register', { email: `  ${email.toUpperCase()}\n`, password: PASSWORD });
    const token = await harness.mailedToken(email);
    await harness.get(`/auth/verify-email/${token}`);
    for (const form of [email, email.toUpperCase(), ` ${email}\t`]) {
      expect((await harness.login(form)).body).toMatchObject({ user: { email } });
    }
  });

  it(row('Contract', 3), async () => {
    const odd = '  🔑🔑 ü 🔑  ';
    const email = await verifiedWith(odd);
    expect((await harness.login(email, odd.trim())).status).toBe(401);
    expect((await harness.login(email, odd)).status).toBe(200);
    const [, kind, version, cost] = (await hashOf(email)).split('$');
    expect([kind, version]).toEqual(['argon2id', 'v=19']);
    const {
      m = 0,
      t = 0,
      p = 0,
    } = Object.fromEntries((cost ?? '').split(',').map((part) => [part[0], Number(part.slice(2))]));
    expect([m >= 19 * 1024, t >= 2, p >= 1]).toEqual([true, true, true]);
    const longest = 'é'.repeat(512);
    expect((await harness.login(await verifiedWith(longest), longest)).status).toBe(200);
  });

  it(row('Contract', 3, 'hashed anew'), async () => {
    const { email } = await harness.person();
    await harness.db.updateTable('users').set({ password_hash: CHEAP_HASH }).where('email', '=', email).execute();
    expect((await harness.login(email, 'another one')).status).toBe(401);
    expect(await hashOf(email)).toBe(CHEAP_HASH);
    expect((await harness.login(email)).status).toBe(200);
    expect(await hashOf(email)).not.toBe(CHEAP_HASH);
    expect((await harness.login(email)).status).toBe(200);
  });

  it(row('Contract', 3, 'concurrent hashes are bounded'), async () => {
    const asked = Array.from({ length: 150 }, () => harness.login(newEmail()));
    const health = await timed(() => harness.get('/health'));
    const statuses = (await Promise.all(asked)).map(refusalOf);
    // All requests come from a single network. The network's turn limit applies before the queue for hashes.
    const [answered, ...refused] = [...new Set(statuses.map(String))].sort();
    expect(answered).toBe('401,LOGIN_WRONG');
    expect(refused.length).toBeGreaterThan(0);
    expect(['429,API_NETWORK_LIMIT', '503,LOGIN_BUSY']).toEqual(expect.arrayContaining(refused));
    expect(health).toBeLessThan(15_000);
    expect((await harness.login(ann.email)).status).toBe(200);
  });

  it(row('Contract', 4), async () => {
    const wrong = await harness.login(ann.email, 'something else');
    const unknown = await harness.login(newEmail());
    expect([...refusalOf(wrong), wrong.error]).toEqual([...refusalOf(unknown), unknown.error]);
    expect(refusalOf(await harness.login(ann.email, 'a'.repeat(60_000)))).toEqual([401, 'LOGIN_WRONG']);
    const { email } = await harness.register();
    const suspended = await harness.person();
    await harness.suspend(suspended.email);
    for (const [address, code] of [
      [email, 'ACCOUNT_UNVERIFIED'],
      [suspended.email, 'ACCOUNT_SUSPENDED'],
    ] as const) {
      expect(refusalOf(await harness.login(address, 'something else'))).toEqual([401, 'LOGIN_WRONG']);
      expect(refusalOf(await harness.login(address))).toEqual([403, code]);
    }
    const external = await harness.login(await harness.external(), 'anything');
    expect([...refusalOf(external), external.cookie]).toEqual([403, 'ACCOUNT_EXTERNAL', '']);
  });

  it(row('Contract', 4, 'in the same time'), async () => {
    const times: Record<'wrong' | 'unknown', number[]> = { wrong: [], unknown: [] };
    for (let round = 0; round < 7; round += 1) {
      times.wrong.push(await timed(() => harness.login(ann.email, 'something else')));
      times.unknown.push(await timed(() => harness.login(newEmail())));
    }
    // Without the work of a hash the time would be a tenth.
    expect(median(times.unknown)).toBeGreaterThan(median(times.wrong) / 3);
  });

  it(row('Contract', 15), async () => {
    const { email } = await harness.register();
    const external = await harness.external();
    for (const path of ['/auth/forgot-password', '/auth/resend-verification']) {
      const answers = await Promise.all(
        [email, newEmail(), external, 'nobody', ''].map((address) => harness.post(path, { email: address })),
      );
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      expect(answers[0]?.status).toBe(200);
      for (const body of [{}, { email: 7 }, { email: null }]) expect((await harness.post(path, body)).status).toBe(400);
    }
    await harness.mailedToken(email, 3);
    expect([harness.rawMails(email).length, harness.rawMails(external)]).toEqual([3, []]);
  });

  it(row('Contract', 33), async () => {
    const { email } = await harness.register();
    await harness.post('/auth/resend-verification', { email: ` ${email.toUpperCase()}` });
    const second = await harness.mailedToken(email, 2);
    expect((await harness.get(`/auth/verify-email/${second}`)).status).toBe(200);
    expect((await harness.login(email)).status).toBe(200);
    // The account is verified, so no verification mail is sent.
    await harness.post('/auth/resend-verification', { email });
    await harness.post('/auth/forgot-password', { email });
    await harness.mailedToken(email, 3);
    expect((await harness.mails(email)).filter(({ text }) => text?.includes('/auth/verify-email/'))).toHaveLength(2);
  });

  it(row('Contract', 34), async () => {
    const { token } = await harness.person();
    for (const [given, shown] of [
      [' Ann ', 'Ann'],
      ['', null],
      ['🦊'.repeat(100), '🦊'.repeat(100)],
      [null, null],
    ]) {
      const answer = await harness.ask('PATCH', '/auth/me', { token, body: { display_name: given, email: 'x@y.z' } });
      expect([answer.status, userPublic.strict().parse(answer.body).display_name]).toEqual([200, shown]);
      expect((await harness.get('/auth/me', token)).body).toEqual(answer.body);
    }
  });

  it(row('Contract', 35), async () => {
    const here = await harness.person();
    const there = await harness.enter(here.email);
    const list = async (): Promise<UserSession[]> => {
      const { body } = await harness.ask('GET', '/auth/sessions', { token: here.token, cookie: here.cookie });
      return userSessions.parse(body);
    };
    const sessions = await list();
    expect([sessions.length, sessions.filter(({ current }) => current).length]).toEqual([2, 1]);
    const other = sessions.find(({ current }) => !current)?.id ?? '';
    const end = (token: string) => harness.ask('DELETE', `/auth/sessions/${other}`, { token });
    expect(refusalOf(await end(ann.token))).toEqual([404, 'LOGIN_SESSION_UNKNOWN']);
    expect((await end(here.token)).status).toBe(204);
    expect(refusalOf(await end(here.token))).toEqual([404, 'LOGIN_SESSION_UNKNOWN']);
    expect((await harness.ask('POST', '/auth/refresh', { cookie: there.cookie })).status).toBe(401);
    expect((await harness.ask('POST', '/auth/refresh', { cookie: here.cookie })).status).toBe(200);
    expect((await list()).length).toBe(1);
  });

  it(row('Contract', 45), async () => {
    const here = await harness.person();
    const there = await harness.enter(here.email);
    const change = (current_password: string) =>
      harness.ask('POST', '/auth/password', {
        token: here.token,
        cookie: here.cookie,
        body: { current_password, new_password: 'another good password' },
      });
    expect(refusalOf(await change('a wrong password'))).toEqual([401, 'PASSWORD_WRONG']);
    const { status, body } = await change(PASSWORD);
    const { access_token, ended_sessions } = passwordChanged.parse(body);
    expect([status, ended_sessions]).toEqual([200, 1]);
    expect((await harness.get('/auth/me', access_token)).status).toBe(200);
    for (const { token } of [here, there]) expect((await harness.get('/auth/me', token)).status).toBe(401);
    expect((await harness.ask('POST', '/auth/refresh', { cookie: there.cookie })).status).toBe(401);
    expect((await harness.ask('POST', '/auth/refresh', { cookie: here.cookie })).status).toBe(200);
  });

  it(row('Contract', 46), async () => {
    const person = await harness.person();
    const taken = await harness.person();
    const free = newEmail();
    const change = (new_email: string, password = PASSWORD) =>
      harness.post('/auth/email', { password, new_email }, person.token);
    expect(refusalOf(await change(free, 'a wrong password'))).toEqual([401, 'PASSWORD_WRONG']);
    const before = harness.rawMails(taken.email).length;
    const answers = [await change(taken.email), await change(free)];
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [200, answers[0]?.body],
      [200, answers[0]?.body],
    ]);
    const token = await harness.mailedToken(free);
    expect((await harness.get('/auth/me', person.token)).body).toMatchObject({ email: person.email });
    expect((await harness.get(`/auth/verify-email/${token}`)).status).toBe(200);
    expect((await harness.get('/auth/me', person.token)).body).toMatchObject({ email: free });
    // Requests are handled in order, so the earlier request has been handled by now.
    expect(harness.rawMails(taken.email)).toHaveLength(before);
  });

  it(row('Contract', 47), async () => {
    const person = await harness.person();
    const remove = (password: string) => harness.ask('DELETE', '/auth/me', { token: person.token, body: { password } });
    expect(refusalOf(await remove('a wrong password'))).toEqual([401, 'PASSWORD_WRONG']);
    expect((await remove(PASSWORD)).status).toBe(204);
    expect(refusalOf(await harness.get('/keys', person.token))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
    expect((await harness.ask('POST', '/auth/refresh', { cookie: person.cookie })).status).toBe(401);
    expect((await harness.login(person.email)).status).toBe(401);
    expect((await harness.post('/auth/register', { email: person.email, password: PASSWORD })).status).toBe(201);
  });
});
