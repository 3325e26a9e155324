import type { ApiError, Registered, SignUpTerms } from '@tunnel/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INVITE_MS } from '../../../services/accounts/invites.ts';
import { invite } from '../../../services/accounts/operator-accounts.ts';
import { type AccountsFixture, openAccounts, PASSWORD, sortedStatuses } from '../../auth/accounts.fixture.ts';

const OPERATOR = { kind: 'operator', name: 'root' } as const;
const publicUrl = 'http://localhost:8080';

let open: AccountsFixture;
let byInvite: AccountsFixture;
let closed: AccountsFixture;
beforeAll(async () => {
  open = await openAccounts();
  byInvite = await openAccounts({ settings: { sign_up: 'invite' }, beside: open });
  closed = await openAccounts({ settings: { sign_up: 'closed' }, beside: open });
});
afterAll(() => open.close());

let made = 0;
const invited = async (email = `invited-${(made += 1)}@example.com`): Promise<{ email: string; token: string }> => {
  const { link } = await invite({ db: open.database.db, clock: open.clock, publicUrl }, OPERATOR, email);
  return { email, token: /^http:\/\/localhost:8080\/app\/signup\?invite=([\w-]{43})$/.exec(link)?.[1] ?? '' };
};

const register = (at: AccountsFixture, email: string, token?: string): Promise<Response> =>
  at.post('/auth/register', { email, password: PASSWORD, ...(token === undefined ? {} : { invite: token }) });

const refusalOf = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  ((await answer.json()) as ApiError).error,
];

const BY_INVITATION = [403, 'sign-up is by invitation here'];

describe('sign-up by invitation', () => {
  it('creates an account that can sign in immediately; an invitation works once', async () => {
    const { email, token } = await invited();
    const answer = await register(byInvite, ` ${email.toUpperCase()} `, token);
    expect([answer.status, ((await answer.json()) as Registered).email_verified]).toEqual([201, true]);
    expect((await byInvite.post('/auth/login', { email, password: PASSWORD })).status).toBe(200);
    expect(await refusalOf(await register(byInvite, email, token))).toEqual(BY_INVITATION);
    expect(await refusalOf(await register(byInvite, 'friend@example.com', token))).toEqual(BY_INVITATION);
  });

  it('is refused with 403 without an invitation, for another address, and with an expired or replaced invitation', async () => {
    const { email, token } = await invited();
    const newer = await invited(email);
    expect(await refusalOf(await register(byInvite, email))).toEqual(BY_INVITATION);
    expect(await refusalOf(await register(byInvite, email, ''))).toEqual(BY_INVITATION);
    expect(await refusalOf(await register(byInvite, email, token))).toEqual(BY_INVITATION);
    expect(await refusalOf(await register(byInvite, 'another@example.com', newer.token))).toEqual(BY_INVITATION);
    await open.clock.advance(INVITE_MS);
    expect(await refusalOf(await register(byInvite, email, newer.token))).toEqual(BY_INVITATION);
  });

  it('does not reveal which addresses have an account without an invitation', async () => {
    await open.register('somebody@example.com');
    expect(await refusalOf(await register(byInvite, 'somebody@example.com'))).toEqual(BY_INVITATION);
  });

  it('succeeds once if several requests use the same invitation concurrently', async () => {
    const { email, token } = await invited();
    const answers = await Promise.all(Array.from({ length: 6 }, () => register(byInvite, email, token)));
    const [first, ...others] = sortedStatuses(answers);
    expect(first).toBe(201);
    // Requests that check before the invitation is used find the address taken, later requests find the invitation used.
    expect(others.every((status) => status === 403 || status === 409)).toBe(true);
  });

  it('keeps the invitation if the registration was rejected for another reason', async () => {
    const { email, token } = await invited();
    const short = await byInvite.post('/auth/register', { email, password: 'short', invite: token });
    expect(short.status).toBe(400);
    expect((await register(byInvite, email, token)).status).toBe(201);
  });

  it('resists guessing: after the first attempts per minute, further guesses get 429', async () => {
    const limits = { auth_per_minute: 30, auth_per_account_per_minute: 10 };
    const strict = await openAccounts({ settings: { sign_up: 'invite', limits }, beside: open });
    const { email } = await invited();
    const statuses = new Set<number>();
    for (let guess = 0; guess < 1000; guess += 1) {
      statuses.add((await register(strict, email, `guess-${guess}`)).status);
    }
    expect(statuses).toEqual(new Set([403, 429]));
    const account = open.database.db.selectFrom('users').select('id').where('email', '=', email);
    expect(await account.execute()).toEqual([]);
  });

  it('stores no invitation token, and deletes the address once used', async () => {
    const { email, token } = await invited();
    const rows = async (): Promise<string> =>
      JSON.stringify(await open.database.db.selectFrom('invites').selectAll().execute());
    expect(await rows()).toContain(email);
    expect(await rows()).not.toContain(token);
    await register(byInvite, email, token);
    expect(await rows()).not.toContain(email);
  });
});

describe('closed and open sign-up', () => {
  it('returns 403 if closed, even with an invitation', async () => {
    const { email, token } = await invited();
    expect(await refusalOf(await register(closed, email))).toEqual([403, 'sign-up is closed here']);
    expect(await refusalOf(await register(closed, email, token))).toEqual([403, 'sign-up is closed here']);
  });

  it('accepts an invitation as proof of the address if open; an invalid invitation is ignored', async () => {
    const { email, token } = await invited();
    expect(await (await register(open, email, token)).json()).toMatchObject({ email_verified: true });
    const late = await register(open, 'late-guest@example.com', token);
    expect([late.status, await late.json()]).toEqual([201, { message: expect.stringContaining('mail') }]);
  });
});

describe('GET /auth/sign-up', () => {
  const terms = async (at: AccountsFixture, query = ''): Promise<SignUpTerms> =>
    (await (await at.ask('GET', `/auth/sign-up${query}`)).json()) as SignUpTerms;

  it('reports who may sign up, and the invited address while the invitation is valid', async () => {
    const { email, token } = await invited();
    expect(await terms(open)).toEqual({ sign_up: 'open', invite_valid: false, invited_email: null });
    expect(await terms(byInvite, `?invite=${token}`)).toEqual({
      sign_up: 'invite',
      invite_valid: true,
      invited_email: email,
    });
    expect(await terms(byInvite, '?invite=nonsense')).toEqual({
      sign_up: 'invite',
      invite_valid: false,
      invited_email: null,
    });
    expect(await terms(closed, `?invite=${token}`)).toEqual({
      sign_up: 'closed',
      invite_valid: false,
      invited_email: null,
    });
    await register(byInvite, email, token);
    expect(await terms(byInvite, `?invite=${token}`)).toEqual({
      sign_up: 'invite',
      invite_valid: false,
      invited_email: null,
    });
  });

  it('returns 429 after too many requests from one network', async () => {
    const limits = { auth_per_minute: 2, auth_per_account_per_minute: 10 };
    const strict = await openAccounts({ settings: { limits }, beside: open });
    const asked = [];
    for (let n = 0; n < 3; n += 1) asked.push((await strict.ask('GET', '/auth/sign-up')).status);
    expect(asked).toEqual([200, 200, 429]);
  });
});
