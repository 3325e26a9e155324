import { loadServerConfig } from '@tunnel/config/server';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AccountsFixture, openAccounts } from '../../http/auth/accounts.fixture.ts';
import { sendRequested } from '../../jobs/send-requested-mails.ts';
import { STRANGERS_MAILS_PER_HOUR } from '../mail/recipient-quota.ts';
import { MAIL_REQUESTS_BATCH, MAIL_REQUESTS_MAX, requestMail, sendRequestedMails } from './mail-requests.ts';

const HOUR_MS = 60 * 60 * 1000;
const publicUrl = 'https://tunnel.example';

let fixture: AccountsFixture;
const statements: string[] = [];
beforeAll(async () => {
  fixture = await openAccounts();
  record(fixture.database.pool);
});
beforeEach(() => void statements.splice(0));
afterAll(() => fixture.close());

/** Records the text of every statement sent to the database. */
const record = (pool: pg.Pool): void => {
  const seen = new WeakSet<pg.PoolClient>();
  pool.on('acquire', (client) => {
    if (seen.has(client)) return;
    seen.add(client);
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((text: unknown, ...rest: unknown[]) => {
      statements.push(String(text));
      return query(text, ...rest);
    }) as typeof client.query;
  });
};

const ask = (path: string, email: string) => fixture.post(`/auth/${path}`, { email });
const subjects = async (recipient: string): Promise<string[]> => {
  await fixture.sendRequested();
  const mails = fixture.database.db.selectFrom('mail_outbox').select('subject').where('recipient', '=', recipient);
  return (await mails.orderBy('created_at').execute()).map(({ subject }) => subject);
};
const waiting = () => fixture.database.db.selectFrom('mail_requests').select(['email', 'kind']).orderBy('id').execute();

describe.each(['forgot-password', 'resend-verification'])('POST /auth/%s', (path) => {
  it('behaves the same for known and unknown addresses, down to the database statements', async () => {
    await fixture.register(`known-${path}@example.com`);
    await fixture.signUp(`verified-${path}@example.com`);
    await fixture.signUp(`external-${path}@example.com`);
    await fixture.setUser(`external-${path}@example.com`, { auth_method: 'github' });
    const seen: { status: number; body: string; statements: string[] }[] = [];
    for (const who of ['known', 'verified', 'external', 'nobody']) {
      statements.splice(0);
      const answer = await ask(path, `${who}-${path}@example.com`);
      seen.push({ status: answer.status, body: await answer.text(), statements: [...statements] });
    }
    expect(seen[0]?.statements).toHaveLength(1);
    expect(seen[0]?.statements[0]).toContain('insert into mail_requests');
    expect(seen.map((one) => JSON.stringify(one))).toEqual(seen.map(() => JSON.stringify(seen[0])));
    await fixture.sendRequested();
    expect(await waiting()).toEqual([]);
  });
});

describe('mails that strangers can cause', () => {
  it('cause no deadlock when several platforms process them', async () => {
    const emails = Array.from({ length: 10 }, (_, index) => `circle-${index}@example.com`);
    const { db, clock } = { db: fixture.database.db, clock: fixture.clock };
    await db
      .insertInto('users')
      .values(emails.map((email) => ({ email, plan: 'free' })))
      .execute();
    // Every second batch has the recipients in reverse order.
    const requests = Array.from({ length: 6 * MAIL_REQUESTS_BATCH }, (_, index) => {
      const turn = Math.floor(index / MAIL_REQUESTS_BATCH) % 2 === 0 ? index % 10 : 9 - (index % 10);
      return { email: emails[turn] ?? '', kind: 'reset' as const, at: new Date(clock.now()) };
    });
    await db.insertInto('mail_requests').values(requests).execute();
    await Promise.all(Array.from({ length: 6 }, () => sendRequestedMails(db, { publicUrl, now: clock.now() })));
    const sent = await db.selectFrom('mail_outbox').select('recipient').where('recipient', 'in', emails).execute();
    expect(sent).toHaveLength(emails.length * STRANGERS_MAILS_PER_HOUR);
  });

  it("leave the owner's quota for a password reset untouched by requests that send no mail", async () => {
    const limits = { auth_per_minute: 1e6, auth_per_account_per_minute: 2 };
    const { platform: settings } = loadServerConfig({ env: {} });
    const strict = await openAccounts({ settings: { ...settings, limits }, beside: fixture });
    const email = 'pestered@example.com';
    await fixture.signUp(email);
    for (let count = 0; count < 3; count += 1) {
      await strict.register(email);
      await strict.post('/auth/resend-verification', { email });
    }
    await strict.post('/auth/forgot-password', { email });
    expect(await subjects(email)).toContain('Reset your Hatchway password');
  });

  it('are limited to three an hour and ten a day per recipient over all kinds, with a 200 each time', async () => {
    const email = 'often@example.com';
    await fixture.register(email);
    for (const path of ['resend-verification', 'forgot-password', 'forgot-password', 'resend-verification']) {
      expect((await ask(path, ` ${email.toUpperCase()}`)).status).toBe(200);
    }
    const verification = 'Verify your Hatchway email address';
    const reset = 'Reset your Hatchway password';
    expect((await subjects(email)).toSorted()).toEqual([reset, verification, verification]);
    await fixture.clock.advance(HOUR_MS - 1);
    await ask('forgot-password', email);
    expect(await subjects(email)).toHaveLength(3);
    const total: number[] = [];
    for (let hour = 0; hour < 4; hour += 1) {
      await fixture.clock.advance(HOUR_MS);
      for (let count = 0; count < 4; count += 1) await ask('forgot-password', email);
      total.push((await subjects(email)).length);
    }
    expect(total).toEqual([6, 9, 10, 10]);
    await fixture.clock.advance(20 * HOUR_MS);
    await ask('forgot-password', email);
    expect(await subjects(email)).toHaveLength(11);
  });

  it('are counted across platforms, even if processed concurrently', async () => {
    const email = 'twice@example.com';
    await fixture.register(email);
    const beside = await openAccounts({ beside: fixture });
    for (let count = 0; count < 30; count += 1) await ask('forgot-password', email);
    await Promise.all([fixture, beside, fixture, beside].map((platform) => platform.sendRequested()));
    expect(await subjects(email)).toHaveLength(3);
  });

  it('never prevent a registration, which then creates the account without a mail', async () => {
    const email = 'again@example.com';
    for (let count = 0; count < 4; count += 1) {
      expect((await fixture.register(email)).status).toBe(201);
      await fixture.database.db.deleteFrom('users').where('email', '=', email).execute();
    }
    expect(await subjects(email)).toHaveLength(3);
  });
});

describe('mail requests', () => {
  it('are limited in number, and ignored for invalid addresses', async () => {
    expect(
      await requestMail({ db: fixture.database.db, clock: fixture.clock }, { typed: 'no address', kind: 'reset' }),
    ).toBe(false);
    await fixture.database.db
      .insertInto('mail_requests')
      .values(
        Array.from({ length: MAIL_REQUESTS_MAX }, (_, index) => ({
          email: `nobody-${index}@example.com`,
          kind: 'reset' as const,
          at: new Date(fixture.clock.now()),
        })),
      )
      .execute();
    expect((await ask('forgot-password', 'one-more@example.com')).status).toBe(200);
    expect(await waiting()).toHaveLength(MAIL_REQUESTS_MAX);
    const { db } = fixture.database;
    const warned: unknown[] = [];
    const logger = { warn: (_: object, message: string) => void warned.push(message) } as never;
    await sendRequested({ publicUrl, wakeMailer: () => {} }).run({ db, clock: fixture.clock, logger });
    expect([(await waiting()).length, warned.length]).toEqual([0, 1]);
    expect(await requestMail({ db, clock: fixture.clock }, { typed: 'one-more@example.com', kind: 'reset' })).toBe(
      true,
    );
  });

  it('wake the mail sender only if a mail was created', async () => {
    await fixture.register('woken@example.com');
    const { db } = fixture.database;
    let woken = 0;
    const job = sendRequested({ publicUrl, wakeMailer: () => (woken += 1) });
    const context = { db, clock: fixture.clock, logger: {} as never };
    await ask('forgot-password', 'nobody-at-all@example.com');
    await job.run(context);
    expect(woken).toBe(0);
    await ask('forgot-password', 'woken@example.com');
    await job.run(context);
    expect(woken).toBe(1);
    const [token] = (await fixture.mailedTokens('woken@example.com')).slice(-1);
    const answer = await fixture.post('/auth/reset-password', { token, password: 'another password' });
    expect(answer.status).toBe(200);
  });
});
