import type { ApiError } from '@tunnel/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AccountsScene, cookieOf, openAccounts, PASSWORD, sortedStatuses } from '../auth/accounts.fixture.ts';

let scene: AccountsScene;
beforeAll(async () => {
  scene = await openAccounts();
});
afterAll(() => scene.close());

const refusalOf = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  ((await answer.json()) as ApiError).code,
];

describe('POST /auth/register', () => {
  it('201: makes an account that cannot log in yet, and writes a mail', async () => {
    const answer = await scene.post('/auth/register', {
      email: '  New@Example.com ',
      password: PASSWORD,
      display_name: ' New ',
      plan: 'payg',
    });
    expect([answer.status, await answer.json()]).toEqual([201, { message: expect.any(String) }]);
    expect(await scene.mailedTokens('new@example.com')).toEqual([expect.stringMatching(/^[\w-]{43}$/)]);
    const login = await scene.post('/auth/login', { email: 'new@example.com', password: PASSWORD });
    expect(await refusalOf(login)).toEqual([403, 'ACCOUNT_UNVERIFIED']);
    const users = scene.database.db.selectFrom('users').select(['display_name', 'plan', 'password_hash']);
    const user = await users.where('email', '=', 'new@example.com').executeTakeFirstOrThrow();
    expect(user).toMatchObject({ display_name: 'New', plan: 'free' });
    expect(user.password_hash).toMatch(/^\$argon2id\$/);
  });

  it.each([
    [{ password: PASSWORD }, 'email'],
    [{ email: 7, password: PASSWORD }, 'email'],
    [{ email: 'nobody', password: PASSWORD }, 'email'],
    [{ email: 'a\u0000@example.com', password: PASSWORD }, 'email'],
    [{ email: 'a@example.com' }, 'password'],
    [{ email: 'a@example.com', password: 'short' }, 'password'],
    [{ email: 'a@example.com', password: 'é'.repeat(513) }, 'password'],
    [{ email: 'a@example.com', password: 'long enough\u0000' }, 'password'],
    [{ email: 'a@example.com', password: `long enough \ud800` }, 'password'],
    [{ email: 'a@example.com', password: PASSWORD, display_name: 7 }, 'display_name'],
    [{ email: 'a@example.com', password: PASSWORD, display_name: 'a'.repeat(101) }, 'display_name'],
    [[], 'body'],
  ])('400: %j names the field', async (body, field) => {
    const answer = await scene.post('/auth/register', body);
    const { error, code } = (await answer.json()) as ApiError;
    expect([answer.status, code]).toEqual([400, 'API_BAD_REQUEST']);
    expect(error.startsWith(`${field}: `)).toBe(true);
  });

  it('409: for an address that is registered, whatever its case', async () => {
    await scene.register('twice@example.com');
    expect(await refusalOf(await scene.register('TWICE@example.com '))).toEqual([409, 'ACCOUNT_EXISTS']);
    expect(await scene.mailedTokens('twice@example.com')).toHaveLength(1);
  });

  it('409: for all but one of those who register an address at once', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => scene.register('race@example.com')));
    expect(sortedStatuses(answers)).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
    expect(await scene.mailedTokens('race@example.com')).toHaveLength(1);
  });

  it('stores neither the token of the mail nor the password', async () => {
    await scene.register('secret@example.com');
    const [token = ''] = await scene.mailedTokens('secret@example.com');
    for (const table of ['mail_tokens', 'users', 'audit_log'] as const) {
      const rows = JSON.stringify(await scene.database.db.selectFrom(table).selectAll().execute());
      expect(rows).not.toContain(token);
      expect(rows).not.toContain(PASSWORD);
    }
  });
});

describe('GET /auth/verify-email/{token}', () => {
  it('200 once, then 400', async () => {
    await scene.register('verify@example.com');
    const [token] = await scene.mailedTokens('verify@example.com');
    const first = await scene.ask('GET', `/auth/verify-email/${token}`);
    expect([first.status, await first.json()]).toEqual([200, { message: expect.any(String) }]);
    const again = await scene.ask('GET', `/auth/verify-email/${token}`);
    expect(await refusalOf(again)).toEqual([400, 'MAIL_TOKEN_INVALID']);
    expect((await scene.post('/auth/login', { email: 'verify@example.com', password: PASSWORD })).status).toBe(200);
  });

  it('200 for one of those who use it at once', async () => {
    await scene.register('clicks@example.com');
    const [token] = await scene.mailedTokens('clicks@example.com');
    const answers = await Promise.all(Array.from({ length: 6 }, () => scene.ask('GET', `/auth/verify-email/${token}`)));
    expect(sortedStatuses(answers)).toEqual([200, 400, 400, 400, 400, 400]);
  });

  it('is not used up by a program that looks at it first', async () => {
    await scene.register('scanned@example.com');
    const [token] = await scene.mailedTokens('scanned@example.com');
    expect((await scene.ask('HEAD', `/auth/verify-email/${token}`)).status).toBe(200);
    expect((await scene.ask('GET', `/auth/verify-email/${token}`)).status).toBe(200);
    expect((await scene.ask('HEAD', `/auth/verify-email/${token}`)).status).toBe(400);
  });

  it('400 after 24 hours, and for anything that is no token', async () => {
    await scene.register('late@example.com');
    const [token] = await scene.mailedTokens('late@example.com');
    await scene.clock.advance(24 * 3_600_000);
    for (const text of [token, 'x', '%00', '%ED%A0%80', 'a'.repeat(5000)]) {
      expect((await scene.ask('GET', `/auth/verify-email/${text}`)).status).toBe(400);
    }
  });

  it('shows browsers a page that lets nothing else in', async () => {
    await scene.register('page@example.com');
    const [token] = await scene.mailedTokens('page@example.com');
    const accept = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
    const good = await scene.ask('GET', `/auth/verify-email/${token}`, undefined, accept);
    expect([good.status, good.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/html/)]);
    expect(await good.text()).toContain('is verified');
    expect(good.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    const used = await scene.ask('GET', `/auth/verify-email/${token}`, undefined, accept);
    expect([used.status, await used.text()]).toEqual([400, expect.stringContaining('not valid')]);
  });
});

describe('POST /auth/resend-verification', () => {
  it('200 always; a mail only for an account that waits for one', async () => {
    await scene.register('waits@example.com');
    await scene.signUp('done@example.com');
    await scene.register('other@example.com');
    await scene.setUser('other@example.com', { auth_method: 'github' });
    const answers = [];
    for (const email of ['WAITS@example.com', 'done@example.com', 'nobody@example.com', 'other@example.com', 'odd']) {
      const answer = await scene.post('/auth/resend-verification', { email });
      answers.push([answer.status, await answer.text()]);
    }
    expect(new Set(answers.map(String)).size).toBe(1);
    expect(answers[0]?.[0]).toBe(200);
    expect(await scene.mailedTokens('done@example.com')).toHaveLength(1);
    expect(await scene.mailedTokens('other@example.com')).toHaveLength(1);
    const [first, second] = await scene.mailedTokens('waits@example.com');
    // Using one of them uses up the other.
    expect((await scene.ask('GET', `/auth/verify-email/${first}`)).status).toBe(200);
    expect((await scene.ask('GET', `/auth/verify-email/${second}`)).status).toBe(400);
  });

  it('400 without a string', async () => {
    for (const body of [{}, { email: null }, { email: 7 }, []]) {
      expect((await scene.post('/auth/resend-verification', body)).status).toBe(400);
      expect((await scene.post('/auth/forgot-password', body)).status).toBe(400);
    }
  });
});

it('nothing of this sets a cookie', async () => {
  expect(cookieOf(await scene.register('cookie@example.com'))).toBe('');
});
