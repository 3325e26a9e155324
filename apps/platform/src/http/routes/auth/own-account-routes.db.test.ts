import type { ApiError, PasswordChanged } from '@tunnel/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AccountsFixture, cookieOf, openAccounts, PASSWORD, sortedStatuses } from '../../auth/accounts.fixture.ts';

const NEW_PASSWORD = 'another good password';

let fixture: AccountsFixture;
let email: string;
let made = 0;
beforeAll(async () => {
  fixture = await openAccounts();
});
beforeEach(async () => {
  email = `owner-${(made += 1)}@example.com`;
  await fixture.signUp(email);
});
afterAll(() => fixture.close());

const refusalOf = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  ((await answer.json()) as ApiError).code,
];

type LoggedIn = Awaited<ReturnType<AccountsFixture['logIn']>>;

const change = (session: LoggedIn, current_password = PASSWORD, new_password = NEW_PASSWORD): Promise<Response> =>
  fixture.post('/auth/password', { current_password, new_password }, { ...session.bearer, cookie: session.cookie });

const me = async ({ bearer }: Pick<LoggedIn, 'bearer'>): Promise<Response> =>
  fixture.ask('GET', '/auth/me', undefined, bearer);

const loginStatus = async (address: string, password: string): Promise<number> =>
  (await fixture.post('/auth/login', { email: address, password })).status;

describe('POST /auth/password', () => {
  it('gives the session a new token, ends all other sessions, and only the new password signs in', async () => {
    const here = await fixture.logIn(email);
    const there = await fixture.logIn(email);
    const third = await fixture.logIn(email);
    const answer = await change(here);
    const { access_token, ended_sessions } = (await answer.json()) as PasswordChanged;
    expect([answer.status, ended_sessions]).toEqual([200, 2]);
    expect((await me({ bearer: { authorization: `Bearer ${access_token}` } })).status).toBe(200);
    for (const session of [here, there, third]) expect((await me(session)).status).toBe(401);
    expect((await fixture.refresh(here.cookie)).status).toBe(200);
    for (const { cookie } of [there, third]) expect((await fixture.refresh(cookie)).status).toBe(401);
    expect([await loginStatus(email, PASSWORD), await loginStatus(email, NEW_PASSWORD)]).toEqual([401, 200]);
    expect(await fixture.auditOf('password.changed')).toHaveLength(1);
  });

  it('ends every session of the account if the request has no refresh cookie of this account', async () => {
    await fixture.signUp(`friend-of-${email}`);
    const friend = await fixture.logIn(`friend-of-${email}`);
    const here = await fixture.logIn(email);
    const answer = await change({ ...here, cookie: friend.cookie });
    expect(((await answer.json()) as PasswordChanged).ended_sessions).toBe(1);
    expect((await fixture.refresh(here.cookie)).status).toBe(401);
    expect((await fixture.refresh(friend.cookie)).status).toBe(200);
  });

  it('returns 401 for a wrong password, changes nothing, and writes an audit entry', async () => {
    const session = await fixture.logIn(email);
    expect(await refusalOf(await change(session, 'a wrong password'))).toEqual([401, 'PASSWORD_WRONG']);
    expect((await me(session)).status).toBe(200);
    expect(await loginStatus(email, PASSWORD)).toBe(200);
    expect((await fixture.auditOf('password.refused')).length).toBeGreaterThan(0);
  });

  it('returns 403 for an external account', async () => {
    const session = await fixture.logIn(email);
    await fixture.setUser(email, { auth_method: 'github' });
    expect(await refusalOf(await change(session))).toEqual([403, 'ACCOUNT_EXTERNAL']);
  });

  it('invalidates reset links requested before', async () => {
    await fixture.post('/auth/forgot-password', { email });
    const token = (await fixture.mailedTokens(email)).at(-1);
    await change(await fixture.logIn(email));
    expect((await fixture.post('/auth/reset-password', { token, password: PASSWORD })).status).toBe(400);
  });

  it('succeeds for one of two concurrent changes and returns 401 for the other', async () => {
    const one = await fixture.logIn(email);
    const two = await fixture.logIn(email);
    const answers = await Promise.all([change(one), change(two, PASSWORD, 'a third good password')]);
    expect(sortedStatuses(answers)).toEqual([200, 401]);
  });

  it('returns 429 for password guessing with an access token, while the owner can still sign in', async () => {
    const limits = { auth_per_minute: 1e6, auth_per_account_per_minute: 3 };
    const strict = await openAccounts({ settings: { limits }, beside: fixture });
    const { bearer } = await fixture.logIn(email);
    const guess = () => strict.ask('DELETE', '/auth/me', { password: 'a guess' }, bearer);
    const statuses = [];
    for (let n = 0; n < 5; n += 1) statuses.push((await guess()).status);
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
    // The owner can still sign in.
    expect((await strict.post('/auth/login', { email, password: PASSWORD })).status).toBe(200);
  });
});

describe('POST /auth/email', () => {
  const ask = async (new_email: string, password = PASSWORD): Promise<Response> => {
    const { bearer } = await fixture.logIn(email);
    return fixture.post('/auth/email', { password, new_email }, bearer);
  };
  const linkFor = async (address: string): Promise<string> => (await fixture.mailedTokens(address)).at(-1) ?? '';
  const open = (token: string, accept = 'application/json'): Promise<Response> =>
    fixture.ask('GET', `/auth/verify-email/${token}`, undefined, { accept });
  const subjects = async (recipient: string): Promise<string[]> => {
    const rows = fixture.database.db.selectFrom('mail_outbox').select('subject').where('recipient', '=', recipient);
    return (await rows.orderBy('created_at').execute()).map(({ subject }) => subject);
  };

  it('changes the address once the link in the mail is opened, and notifies the old address', async () => {
    const session = await fixture.logIn(email);
    const to = `new-${email}`;
    expect((await ask(` ${to.toUpperCase()}`)).status).toBe(200);
    const token = await linkFor(to);
    expect((await (await me(session)).json()) as object).toMatchObject({ email });
    expect((await fixture.ask('HEAD', `/auth/verify-email/${token}`)).status).toBe(200);
    expect((await open(token)).status).toBe(200);
    expect((await (await me(session)).json()) as object).toMatchObject({ email: to, email_verified: true });
    expect([await loginStatus(email, PASSWORD), await loginStatus(to, PASSWORD)]).toEqual([401, 200]);
    expect(await subjects(email)).toContain('Your Hatchway email address was changed');
    expect((await open(token)).status).toBe(400);
  });

  it("leads from the link's page to the sign-in with the new address", async () => {
    const to = `page-${email}`;
    await ask(to);
    const page = await (await open(await linkFor(to), 'text/html')).text();
    expect(page).toContain(`href="../../app/login?email=page-${email.replace('@', '%40')}"`);
  });

  it('responds the same for a taken, the current and a free address, and mails only the free address', async () => {
    const taken = `taken-${email}`;
    await fixture.signUp(taken);
    const before = await subjects(taken);
    const answers = [await ask(`free-${email}`), await ask(taken), await ask(email)];
    const told = await Promise.all(answers.map(async (answer) => [answer.status, await answer.text()]));
    expect(new Set(told.map((each) => JSON.stringify(each))).size).toBe(1);
    expect(told[0]?.[0]).toBe(200);
    await fixture.sendRequested();
    expect(await subjects(taken)).toEqual(before);
    expect(await subjects(`free-${email}`)).toEqual(['Confirm your new email address']);
  });

  it('stores one request for every address, without a lookup before the response', async () => {
    const taken = `noted-${email}`;
    await fixture.signUp(taken);
    for (const address of [taken, `nobody-${email}`]) {
      await ask(address);
      const rows = fixture.database.db.selectFrom('mail_requests').select('kind').where('email', '=', address);
      expect(await rows.execute()).toEqual([{ kind: 'change' }]);
    }
    await fixture.sendRequested();
  });

  it('returns 409 on the link if the address was registered meanwhile, and changes nothing', async () => {
    const to = `race-${email}`;
    await ask(to);
    const token = await linkFor(to);
    await fixture.register(to);
    expect(await refusalOf(await open(token))).toEqual([409, 'ACCOUNT_EXISTS']);
    expect(await (await open(token, 'text/html')).text()).toContain('This email address is already in use');
    expect(await loginStatus(email, PASSWORD)).toBe(200);
    expect(await subjects(email)).not.toContain('Your Hatchway email address was changed');
  });

  it('gives an address requested by two accounts to only one of them', async () => {
    const to = `wanted-${email}`;
    await fixture.signUp(`rival-${email}`);
    const rival = await fixture.logIn(`rival-${email}`);
    await ask(to);
    await fixture.post('/auth/email', { password: PASSWORD, new_email: to }, rival.bearer);
    const [one = '', two = ''] = await fixture.mailedTokens(to);
    expect(sortedStatuses(await Promise.all([open(one), open(two)]))).toEqual([200, 409]);
  });

  it('invalidates links mailed to the old address and earlier address changes', async () => {
    await ask(`first-${email}`);
    const older = await linkFor(`first-${email}`);
    await fixture.post('/auth/forgot-password', { email });
    const reset = await linkFor(email);
    await ask(`second-${email}`);
    expect((await open(await linkFor(`second-${email}`))).status).toBe(200);
    expect((await open(older)).status).toBe(400);
    const answer = await fixture.post('/auth/reset-password', { token: reset, password: NEW_PASSWORD });
    expect(answer.status).toBe(400);
  });

  it('cancels pending address changes when the password changes, so that a thief of the old password gains nothing', async () => {
    await ask(`changed-${email}`);
    const mailed = await linkFor(`changed-${email}`);
    const noted = `noted-late-${email}`;
    await ask(noted);
    await change(await fixture.logIn(email));
    expect([(await open(mailed)).status, await fixture.mailedTokens(noted)]).toEqual([400, []]);
    const { bearer } = await fixture.logIn(email, NEW_PASSWORD);
    await fixture.post('/auth/email', { password: NEW_PASSWORD, new_email: noted }, bearer);
    const asked = await linkFor(noted);
    await fixture.post('/auth/forgot-password', { email });
    await fixture.post('/auth/reset-password', { token: await linkFor(email), password: PASSWORD });
    expect((await open(asked)).status).toBe(400);
    expect(await loginStatus(email, PASSWORD)).toBe(200);
  });

  it('keeps waiting mails to the old address with the account, so that deletion removes them', async () => {
    const mail = { recipient: email, subject: 'You are invited to Hatchway', text_body: '', html_body: '' };
    await fixture.database.db.insertInto('mail_outbox').values(mail).execute();
    await ask(`later-${email}`);
    await open(await linkFor(`later-${email}`));
    const { bearer } = await fixture.logIn(`later-${email}`);
    await fixture.ask('DELETE', '/auth/me', { password: PASSWORD }, bearer);
    expect([...(await subjects(email)), ...(await subjects(`later-${email}`))]).toEqual([]);
  });

  it('returns 401 for a wrong password and 400 for an invalid address, and stores no request', async () => {
    expect(await refusalOf(await ask(`x-${email}`, 'a wrong password'))).toEqual([401, 'PASSWORD_WRONG']);
    const odd = await ask('no address');
    expect([odd.status, ((await odd.json()) as ApiError).error]).toEqual([400, 'new_email: must be an email address']);
    expect(await fixture.database.db.selectFrom('mail_requests').selectAll().execute()).toEqual([]);
  });

  it('sends links that change nothing once the account is deleted', async () => {
    const to = `gone-${email}`;
    await ask(to);
    const token = await linkFor(to);
    const { bearer } = await fixture.logIn(email);
    const { db } = fixture.database;
    const links = await db.selectFrom('mail_tokens').selectAll().where('new_email', '=', to).execute();
    await fixture.ask('DELETE', '/auth/me', { password: PASSWORD }, bearer);
    expect((await open(token)).status).toBe(400);
    // Restores the links, as if the platform had been killed before deleting them.
    await db.insertInto('mail_tokens').values(links).execute();
    expect((await open(token)).status).toBe(400);
    expect(await db.selectFrom('users').select('id').where('email', '=', to).execute()).toEqual([]);
  });
});

describe('DELETE /auth/me', () => {
  it('ends all sessions and tokens with 204, and frees the address', async () => {
    const here = await fixture.logIn(email);
    const there = await fixture.logIn(email);
    const beside = await openAccounts({ beside: fixture });
    const answer = await fixture.ask('DELETE', '/auth/me', { password: PASSWORD }, here.bearer);
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([204, expect.stringContaining('Max-Age=0')]);
    for (const session of [here, there]) {
      expect(await refusalOf(await me(session))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
      expect((await fixture.refresh(session.cookie)).status).toBe(401);
    }
    await fixture.clock.advance(2000);
    expect((await beside.ask('GET', '/auth/me', undefined, here.bearer)).status).toBe(401);
    expect(await loginStatus(email, PASSWORD)).toBe(401);
    expect((await fixture.register(email)).status).toBe(201);
  });

  it('deletes once under concurrent requests, which get 204 or 401', async () => {
    const { bearer } = await fixture.logIn(email);
    const ask = () => fixture.ask('DELETE', '/auth/me', { password: PASSWORD }, bearer);
    const statuses = sortedStatuses(await Promise.all([ask(), ask(), ask()]));
    // A request that arrives after the deletion has an invalid token.
    expect(statuses[0]).toBe(204);
    expect(statuses.every((status) => status === 204 || status === 401)).toBe(true);
    expect((await ask()).status).toBe(401);
    const deletions = await fixture.database.db.selectFrom('account_deletions').select('user_id').execute();
    expect(new Set(deletions.map(({ user_id }) => user_id)).size).toBe(deletions.length);
  });

  it('sets no session cookie', async () => {
    const { bearer } = await fixture.logIn(email);
    expect(cookieOf(await fixture.ask('DELETE', '/auth/me', { password: PASSWORD }, bearer))).toBe('');
  });
});
