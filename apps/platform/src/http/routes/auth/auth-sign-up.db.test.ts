import type { ApiError } from '@tunnel/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AccountsFixture, cookieOf, openAccounts, PASSWORD, sortedStatuses } from '../../auth/accounts.fixture.ts';

let fixture: AccountsFixture;
beforeAll(async () => {
  fixture = await openAccounts();
});
afterAll(() => fixture.close());

const refusalOf = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  ((await answer.json()) as ApiError).code,
];

describe('POST /auth/register', () => {
  it('returns 201, creates an account that cannot sign in yet, and sends a mail', async () => {
    const answer = await fixture.post('/auth/register', {
      email: '  New@Example.com ',
      password: PASSWORD,
      display_name: ' New ',
      plan: 'payg',
    });
    expect([answer.status, await answer.json()]).toEqual([201, { message: expect.any(String) }]);
    expect(await fixture.mailedTokens('new@example.com')).toEqual([expect.stringMatching(/^[\w-]{43}$/)]);
    const login = await fixture.post('/auth/login', { email: 'new@example.com', password: PASSWORD });
    expect(await refusalOf(login)).toEqual([403, 'ACCOUNT_UNVERIFIED']);
    const users = fixture.database.db.selectFrom('users').select(['display_name', 'plan', 'password_hash']);
    const user = await users.where('email', '=', 'new@example.com').executeTakeFirstOrThrow();
    expect(user).toMatchObject({ display_name: 'New', plan: 'free' });
    expect(user.password_hash).toMatch(/^\$argon2id\$/);
  });

  it('returns 409 for a registered address, regardless of case', async () => {
    await fixture.register('twice@example.com');
    expect(await refusalOf(await fixture.register('TWICE@example.com '))).toEqual([409, 'ACCOUNT_EXISTS']);
    expect(await fixture.mailedTokens('twice@example.com')).toHaveLength(1);
  });

  it('returns 409 for all but the first of concurrent registrations of an address', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => fixture.register('race@example.com')));
    expect(sortedStatuses(answers)).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
    expect(await fixture.mailedTokens('race@example.com')).toHaveLength(1);
  });

  it('stores neither the mailed token nor the password', async () => {
    await fixture.register('secret@example.com');
    const [token = ''] = await fixture.mailedTokens('secret@example.com');
    for (const table of ['mail_tokens', 'users', 'audit_log'] as const) {
      const rows = JSON.stringify(await fixture.database.db.selectFrom(table).selectAll().execute());
      expect(rows).not.toContain(token);
      expect(rows).not.toContain(PASSWORD);
    }
  });
});

describe('GET /auth/verify-email/{token}', () => {
  it('returns 200 for only one of several concurrent uses', async () => {
    await fixture.register('clicks@example.com');
    const [token] = await fixture.mailedTokens('clicks@example.com');
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => fixture.ask('GET', `/auth/verify-email/${token}`)),
    );
    expect(sortedStatuses(answers)).toEqual([200, 400, 400, 400, 400, 400]);
  });

  it('is not used up by a HEAD request, as sent by mail scanners', async () => {
    await fixture.register('scanned@example.com');
    const [token] = await fixture.mailedTokens('scanned@example.com');
    expect((await fixture.ask('HEAD', `/auth/verify-email/${token}`)).status).toBe(200);
    expect((await fixture.ask('GET', `/auth/verify-email/${token}`)).status).toBe(200);
    expect((await fixture.ask('HEAD', `/auth/verify-email/${token}`)).status).toBe(400);
  });

  it('returns 400 after 24 hours and for an invalid token', async () => {
    await fixture.register('late@example.com');
    const [token] = await fixture.mailedTokens('late@example.com');
    await fixture.clock.advance(24 * 3_600_000);
    for (const text of [token, 'x', '%00', '%ED%A0%80', 'a'.repeat(5000)]) {
      expect((await fixture.ask('GET', `/auth/verify-email/${text}`)).status).toBe(400);
    }
  });

  it('shows browsers a page with a restrictive content security policy', async () => {
    await fixture.register('page@example.com');
    const [token] = await fixture.mailedTokens('page@example.com');
    const accept = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
    const good = await fixture.ask('GET', `/auth/verify-email/${token}`, undefined, accept);
    expect([good.status, good.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/html/)]);
    expect(await good.text()).toContain('href="../../app/login?email=page%40example.com"');
    expect(good.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    const used = await fixture.ask('GET', `/auth/verify-email/${token}`, undefined, accept);
    expect([used.status, await used.text()]).toEqual([
      400,
      expect.stringContaining('This link has expired or was already used.'),
    ]);
  });
});

describe('POST /auth/resend-verification', () => {
  it('always returns the same 200, and mails only unverified accounts with a password', async () => {
    await fixture.register('waits@example.com');
    await fixture.signUp('done@example.com');
    await fixture.register('other@example.com');
    await fixture.setUser('other@example.com', { auth_method: 'github' });
    const answers = [];
    for (const email of ['WAITS@example.com', 'done@example.com', 'nobody@example.com', 'other@example.com', 'odd']) {
      const answer = await fixture.post('/auth/resend-verification', { email });
      answers.push([answer.status, await answer.text()]);
    }
    expect(new Set(answers.map(String)).size).toBe(1);
    expect(answers[0]?.[0]).toBe(200);
    expect(await fixture.mailedTokens('done@example.com')).toHaveLength(1);
    expect(await fixture.mailedTokens('other@example.com')).toHaveLength(1);
    const [first, second] = await fixture.mailedTokens('waits@example.com');
    // Using the first link also uses up the second link.
    expect((await fixture.ask('GET', `/auth/verify-email/${first}`)).status).toBe(200);
    expect((await fixture.ask('GET', `/auth/verify-email/${second}`)).status).toBe(400);
  });
});

it('POST /auth/register sets no refresh cookie', async () => {
  expect(cookieOf(await fixture.register('cookie@example.com'))).toBe('');
});
