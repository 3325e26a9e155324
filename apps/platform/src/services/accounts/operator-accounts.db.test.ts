import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AccountsFixture, openAccounts, PASSWORD } from '../../http/auth/accounts.fixture.ts';
import { PasswordHasher } from '../auth/password-hasher.ts';
import { INVITE_MS } from './invites.ts';
import { RESET_TOKEN_MS } from './mail-tokens.ts';
import { createUser, deleteUser, invite, sendPasswordReset } from './operator-accounts.ts';

const OPERATOR = { kind: 'operator', name: 'root' } as const;

let fixture: AccountsFixture;
beforeAll(async () => {
  fixture = await openAccounts({ settings: { sign_up: 'closed' } });
});
afterAll(() => fixture.close());

const context = () => ({
  db: fixture.database.db,
  clock: fixture.clock,
  publicUrl: 'https://tunnel.example/',
  passwords: new PasswordHasher({ cost: { memoryKib: 64, passes: 1, lanes: 1 }, slots: 1 }),
});
const create = (email: string, password: string | null) => createUser(context(), OPERATOR, { email, password });
const loginStatus = async (email: string, password = PASSWORD): Promise<number> =>
  (await fixture.post('/auth/login', { email, password })).status;
const mailsTo = (recipient: string) =>
  fixture.database.db
    .selectFrom('mail_outbox')
    .select(['subject', 'text_body'])
    .where('recipient', '=', recipient)
    .execute();
const tokenOf = (link: string): string => new URL(link).searchParams.get('token') ?? '';
const choose = (link: string, password = PASSWORD): Promise<Response> =>
  fixture.post('/auth/reset-password', { token: tokenOf(link), password });

describe('an operator', () => {
  it('can create an account with a password, which can sign in at once and gets no mail', async () => {
    const made = await create(' Given@Example.com', PASSWORD);
    expect(made).toMatchObject({ email: 'given@example.com', link: null });
    expect(await loginStatus('given@example.com')).toBe(200);
    expect(await mailsTo('given@example.com')).toEqual([]);
    expect(await fixture.auditOf('user.created')).toMatchObject([{ actor: 'operator:root', user_id: made.id }]);
  });

  it('can create an account without a password; its owner sets one within 7 days by a mailed link', async () => {
    const { email, link } = await create('chooser@example.com', null);
    expect(link).toMatch(/^https:\/\/tunnel\.example\/app\/reset-password\?token=[\w-]{43}$/);
    const [mail] = await mailsTo(email);
    expect([mail?.subject, mail?.text_body]).toEqual([
      'Your Hatchway account is ready',
      expect.stringContaining(link ?? ''),
    ]);
    expect([await loginStatus(email, ''), await loginStatus(email)]).toEqual([401, 401]);
    await fixture.clock.advance(INVITE_MS - 1);
    expect((await choose(link ?? '')).status).toBe(200);
    expect(await loginStatus(email)).toBe(200);
    expect((await choose(link ?? '')).status).toBe(400);
  });

  it('can send a reset link, which works for an hour and changes nothing before its use', async () => {
    await create('forgetful@example.com', PASSWORD);
    const first = await sendPasswordReset(context(), OPERATOR, 'FORGETFUL@example.com');
    expect(await loginStatus('forgetful@example.com')).toBe(200);
    expect(await mailsTo('forgetful@example.com')).toMatchObject([{ subject: 'Reset your Hatchway password' }]);
    await fixture.clock.advance(RESET_TOKEN_MS);
    expect((await choose(first.link)).status).toBe(400);
    const { link } = await sendPasswordReset(context(), OPERATOR, 'forgetful@example.com');
    expect((await choose(link, 'a newer password')).status).toBe(200);
    expect(await loginStatus('forgetful@example.com', 'a newer password')).toBe(200);
  });

  it('can invite an address with a mailed link, but not an address with an account', async () => {
    const { email, link, expiresAt } = await invite(context(), OPERATOR, 'guest@example.com');
    expect(link).toMatch(/^https:\/\/tunnel\.example\/app\/signup\?invite=[\w-]{43}$/);
    expect(expiresAt.getTime() - fixture.clock.now()).toBe(INVITE_MS);
    expect(await mailsTo(email)).toMatchObject([
      { subject: 'You are invited to Hatchway', text_body: expect.stringContaining(link) },
    ]);
    await create(email, PASSWORD);
    await expect(invite(context(), OPERATOR, email)).rejects.toMatchObject({ code: 'ACCOUNT_EXISTS' });
    expect(await fixture.database.db.selectFrom('invites').selectAll().where('email', '=', email).execute()).toEqual(
      [],
    );
  });

  it('gets an error for an invalid, taken, unknown or external address, and for a short password', async () => {
    await create('taken@example.com', PASSWORD);
    await expect(create('taken@example.com', null)).rejects.toMatchObject({ code: 'ACCOUNT_EXISTS' });
    await expect(create('no address', null)).rejects.toThrow('email: must be an email address');
    await expect(create('short@example.com', 'short')).rejects.toThrow('password: must have at least 8 characters');
    await expect(invite(context(), OPERATOR, 'no address')).rejects.toThrow('email: must be an email address');
    for (const verb of [sendPasswordReset, deleteUser]) {
      await expect(verb(context(), OPERATOR, 'nobody@example.com')).rejects.toMatchObject({ code: 'USER_UNKNOWN' });
    }
    await fixture.setUser('taken@example.com', { auth_method: 'github' });
    await expect(sendPasswordReset(context(), OPERATOR, 'taken@example.com')).rejects.toMatchObject({
      code: 'ACCOUNT_EXTERNAL',
    });
  });

  it('can delete a suspended account without its password', async () => {
    await create('leaving@example.com', PASSWORD);
    await fixture.setUser('leaving@example.com', { status: 'suspended' });
    await deleteUser(context(), OPERATOR, 'leaving@example.com');
    expect(await loginStatus('leaving@example.com')).toBe(401);
    expect(await fixture.auditOf('user.deleted')).toMatchObject([{ actor: 'operator:root' }]);
  });
});
