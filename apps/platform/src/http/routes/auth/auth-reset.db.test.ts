import type { ApiError } from '@tunnel/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AccountsFixture, cookieOf, openAccounts, PASSWORD, sortedStatuses } from '../../auth/accounts.fixture.ts';

const NEW_PASSWORD = 'another long password';

let fixture: AccountsFixture;
let email: string;
let count = 0;
beforeAll(async () => {
  fixture = await openAccounts();
});
beforeEach(async () => {
  count += 1;
  email = `user${count}@example.com`;
});
afterAll(() => fixture.close());

const forgot = (address: string) => fixture.post('/auth/forgot-password', { email: address });
const reset = (token: string | undefined, password: unknown = NEW_PASSWORD) =>
  fixture.post('/auth/reset-password', { token, password });
const resetToken = async (address: string): Promise<string> => {
  await fixture.clock.advance(1);
  await forgot(address);
  return (await fixture.mailedTokens(address)).at(-1) ?? '';
};
const loginStatus = async (password: string) => (await fixture.post('/auth/login', { email, password })).status;

describe('POST /auth/forgot-password', () => {
  it('returns the same 200 for any address, and mails only accounts with a password', async () => {
    await fixture.signUp(email);
    await fixture.signUp('github@example.com');
    await fixture.setUser('github@example.com', { auth_method: 'github' });
    const answers = [];
    for (const address of [email.toUpperCase(), 'nobody@example.com', 'github@example.com', 'odd', '']) {
      const answer = await forgot(address);
      answers.push([answer.status, await answer.text()]);
    }
    expect(new Set(answers.map(String)).size).toBe(1);
    expect(answers[0]?.[0]).toBe(200);
    expect(await fixture.mailedTokens(email)).toHaveLength(2);
    expect(await fixture.mailedTokens('github@example.com')).toHaveLength(1);
  });
});

describe('POST /auth/reset-password', () => {
  it('changes the password, and ends every session and access token', async () => {
    await fixture.signUp(email);
    const session = await fixture.logIn(email);
    const answer = await reset(await resetToken(email));
    expect([answer.status, await answer.json()]).toEqual([200, { message: expect.any(String) }]);
    expect((await fixture.ask('GET', '/auth/me', undefined, session.bearer)).status).toBe(401);
    expect((await fixture.refresh(session.cookie)).status).toBe(401);
    expect([await loginStatus(PASSWORD), await loginStatus(NEW_PASSWORD)]).toEqual([401, 200]);
    expect(await fixture.auditOf('password.reset')).toHaveLength(1);
  });

  it('verifies the address', async () => {
    await fixture.register(email);
    expect(await loginStatus(PASSWORD)).toBe(403);
    expect((await reset(await resetToken(email))).status).toBe(200);
    expect(await loginStatus(NEW_PASSWORD)).toBe(200);
  });

  it('ends access tokens in other processes within two seconds', async () => {
    await fixture.signUp(email);
    const { bearer } = await fixture.logIn(email);
    const beside = await openAccounts({ beside: fixture });
    const me = () => beside.ask('GET', '/auth/me', undefined, bearer);
    expect((await me()).status).toBe(200);
    await reset(await resetToken(email));
    await fixture.clock.advance(2000);
    expect((await me()).status).toBe(401);
  });

  it('returns 400 for a used, older or expired token, a token of another kind, and any other text', async () => {
    await fixture.register(email);
    const [verifyToken] = await fixture.mailedTokens(email);
    const older = await resetToken(email);
    const newer = await resetToken(email);
    expect((await reset(newer)).status).toBe(200);
    const late = await resetToken(email);
    await fixture.clock.advance(3_600_000);
    for (const token of [newer, older, verifyToken, late, '', 'x', 'a'.repeat(9000)]) {
      const answer = await reset(token, 'a third long password');
      expect([answer.status, ((await answer.json()) as ApiError).code]).toEqual([400, 'MAIL_TOKEN_INVALID']);
    }
    expect(await loginStatus(NEW_PASSWORD)).toBe(200);
  });

  it('returns 200 only once for concurrent uses of one or two tokens of an account', async () => {
    await fixture.signUp(email);
    const one = await resetToken(email);
    const two = await resetToken(email);
    const answers = await Promise.all([one, two, one, two, one, two].map((token) => reset(token)));
    expect(sortedStatuses(answers)).toEqual([200, 400, 400, 400, 400, 400]);
  });

  it('sets no cookie', async () => {
    await fixture.signUp(email);
    expect(cookieOf(await reset(await resetToken(email)))).toBe('');
  });
});
