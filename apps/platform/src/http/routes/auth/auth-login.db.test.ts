import { type ApiError, loggedIn } from '@tunnel/contract';
import { sha256Hex } from '@tunnel/runtime';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PasswordHasher } from '../../../services/auth/password-hasher.ts';
import { type AccountsFixture, cookieOf, openAccounts, PASSWORD } from '../../auth/accounts.fixture.ts';

let fixture: AccountsFixture;
beforeAll(async () => {
  fixture = await openAccounts();
});
afterAll(() => fixture.close());

const refusalOf = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  ((await answer.json()) as ApiError).code,
];
const tryLogin = (email: string, password: unknown = PASSWORD) => fixture.post('/auth/login', { email, password });

describe('POST /auth/login', () => {
  it('returns 200 with an access token, the user and the cookie', async () => {
    await fixture.signUp('ann@example.com');
    const answer = await tryLogin(' ANN@example.com');
    expect(answer.status).toBe(200);
    const { access_token, user } = loggedIn.parse(await answer.json());
    expect(user).toEqual({
      id: expect.any(String),
      email: 'ann@example.com',
      display_name: null,
      email_verified: true,
      status: 'active',
      auth_method: 'password',
      created_at: expect.stringMatching(/^2030-01-/),
    });
    expect(answer.headers.get('set-cookie')).toMatch(
      /^refresh_token=[\w-]{43}; Max-Age=2592000; Path=\/auth; HttpOnly; SameSite=Lax$/,
    );
    expect(decodeProtectedHeader(access_token)).toEqual({ alg: 'EdDSA', typ: 'JWT', kid: expect.any(String) });
    const claims = decodeJwt(access_token);
    expect(Object.keys(claims).sort()).toEqual(['aud', 'epoch', 'exp', 'iat', 'iss', 'jti', 'sub']);
    expect(claims).toMatchObject({ sub: user.id, epoch: 0, iss: 'http://localhost:8080' });
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(900);
  });

  it('returns the same 401 for a wrong password and for an unknown address', async () => {
    const wrong = await tryLogin('ann@example.com', 'wrong password');
    const unknown = await tryLogin('nobody@example.com');
    const odd = await tryLogin('not an address');
    const told = async (answer: Response) => {
      const { error, code } = (await answer.json()) as ApiError;
      return [answer.status, error, code, answer.headers.get('www-authenticate'), cookieOf(answer)];
    };
    const [first, ...others] = await Promise.all([wrong, unknown, odd].map(told));
    expect(first?.[0]).toBe(401);
    expect(others).toEqual([first, first]);
  });

  it('returns 401 if the password was changed during the check', async () => {
    await fixture.signUp('slow@example.com');
    class SlowHasher extends PasswordHasher {
      override async matches(): Promise<boolean> {
        const raised = fixture.database.db.updateTable('users').set((user) => ({ epoch: user('epoch', '+', 1) }));
        await raised.where('email', '=', 'slow@example.com').execute();
        return true;
      }
      override isOutdated(): boolean {
        return false;
      }
    }
    const beside = await openAccounts({ passwords: new SlowHasher(), beside: fixture });
    const answer = await beside.post('/auth/login', { email: 'slow@example.com', password: PASSWORD });
    expect(await refusalOf(answer)).toEqual([401, 'LOGIN_WRONG']);
  });

  it('returns 503 with Retry-After if too many passwords wait to be checked', async () => {
    const passwords = new PasswordHasher({ cost: { memoryKib: 4096, passes: 2, lanes: 1 }, slots: 1, waitingMax: 1 });
    const beside = await openAccounts({ passwords, beside: fixture });
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => beside.post('/auth/login', { email: 'ann@example.com', password: PASSWORD })),
    );
    const refused = answers.filter(({ status }) => status === 503);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.headers.get('retry-after')).toBe('2');
    expect(answers.some(({ status }) => status === 200)).toBe(true);
  });
});

it('the audit log has successful sign-ins with the user, and failed sign-ins without the address', async () => {
  await fixture.signUp('seen@example.com');
  await fixture.logIn('seen@example.com');
  await tryLogin('seen@example.com', 'wrong password');
  await tryLogin('Hidden@example.com');
  expect((await fixture.auditOf('login')).at(-1)).toMatchObject({ details: { session_id: expect.any(String) } });
  const refusals = await fixture.auditOf('login.refused');
  expect(refusals.at(-2)).toMatchObject({ user_id: expect.any(String), details: { reason: 'wrong' } });
  expect(refusals.at(-1)).toMatchObject({
    user_id: null,
    details: { reason: 'wrong', email_sha256: sha256Hex('hidden@example.com') },
  });
  expect(JSON.stringify(refusals)).not.toContain('@');
});

describe('sign-in limits', () => {
  it('return 429 with Retry-After per account and per address; forgot and resend return 200 but send no mail', async () => {
    const limits = { auth_per_minute: 6, auth_per_account_per_minute: 2 };
    const limited = await openAccounts({ settings: { limits }, beside: fixture });
    const login = (email: string) => limited.post('/auth/login', { email, password: 'wrong password' });
    const statuses = [];
    for (let count = 0; count < 3; count += 1) statuses.push((await login('ann@example.com')).status);
    expect(statuses).toEqual([401, 401, 429]);
    // Guesses do not prevent the owner from requesting a mail.
    await limited.post('/auth/forgot-password', { email: 'ann@example.com' });
    const mailed = await fixture.mailedTokens('ann@example.com');
    await login('b@example.com');
    await login('c@example.com');
    const throttled = await login('d@example.com');
    expect([throttled.status, Number(throttled.headers.get('retry-after'))]).toEqual([429, expect.any(Number)]);
    expect(Number(throttled.headers.get('retry-after'))).toBeGreaterThan(0);
    for (const path of ['/auth/register', '/auth/reset-password']) {
      const body = { email: 'e@example.com', password: PASSWORD, token: 'x' };
      expect((await limited.post(path, body)).status).toBe(429);
    }
    for (const path of ['/auth/forgot-password', '/auth/resend-verification']) {
      expect((await limited.post(path, { email: 'ann@example.com' })).status).toBe(200);
    }
    expect(await fixture.mailedTokens('ann@example.com')).toEqual(mailed);
  });

  it('stop a guesser with 429, but not the owner on another network or on a known device', async () => {
    const limits = { auth_per_minute: 1000, auth_per_account_per_minute: 4 };
    const guarded = await openAccounts({ settings: { limits }, beside: fixture });
    const from = (address: string, password: string, headers: Record<string, string> = {}) => {
      guarded.peer = address;
      return guarded.post('/auth/login', { email: 'owner@example.com', password }, headers);
    };
    const guess = async (address: string, times: number) => {
      const statuses = [];
      for (let count = 0; count < times; count += 1) statuses.push((await from(address, 'a guess')).status);
      return statuses;
    };
    await fixture.signUp('owner@example.com');
    const home = await from('2001:db8:0:1::7', PASSWORD);
    expect(home.status).toBe(200);
    expect(await guess('203.0.113.66', 6)).toEqual([401, 401, 401, 401, 429, 429]);
    // The owner signs in from another address in the known network, and from a network never seen before.
    expect((await from('2001:db8:0:1:aaaa::8', PASSWORD)).status).toBe(200);
    expect((await from('198.51.100.9', PASSWORD)).status).toBe(200);
    // Guesses from many networks: unknown networks must wait, known networks need not.
    const many = await Promise.all(Array.from({ length: 20 }, (_, index) => from(`192.0.2.${index}`, 'a guess')));
    expect(many.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(4);
    const stranger = await from('192.0.2.100', PASSWORD);
    expect([stranger.status, Number(stranger.headers.get('retry-after'))]).toEqual([429, expect.any(Number)]);
    expect((await from('2001:db8:0:1::7', PASSWORD)).status).toBe(200);
    // A guesser within the owner's network.
    expect((await guess('2001:db8:0:1::bad', 5)).at(-1)).toBe(429);
    expect((await from('2001:db8:0:1::7', PASSWORD)).status).toBe(429);
    expect((await from('2001:db8:0:1::7', PASSWORD, { cookie: cookieOf(home) })).status).toBe(200);
    // A cookie of another account does not make the browser a known device of this account.
    const other = cookieOf(await fixture.post('/auth/login', { email: 'ann@example.com', password: PASSWORD }));
    expect((await from('2001:db8:0:1::7', PASSWORD, { cookie: other })).status).toBe(429);
    await guarded.clock.advance(60_000);
    expect((await from('192.0.2.100', PASSWORD)).status).toBe(200);
  });
});
