import { eventually } from '@tunnel/testkit';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Account, addAccount, createLinkFixture, type LinkFixture } from '../services/edges/link.fixture.ts';
import { cleanUp } from './clean-up.ts';
import { Jobs, withJobLock } from './jobs.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

const clean = cleanUp({ audit_days: 400, tunnel_log_days: 400, unverified_user_days: 7 });

let fixture: LinkFixture;
let account: Account;
beforeAll(async () => {
  fixture = await createLinkFixture();
  account = await addAccount(fixture.db);
});
afterAll(() => fixture.close());

const daysAgo = (days: number): Date => new Date(fixture.clock.now() - days * DAY_MS);

describe('the cleanup job', () => {
  it('deletes old rows but no rows still in use', async () => {
    const { db } = fixture;
    const { id: family_id } = await db
      .insertInto('refresh_families')
      .values({ user_id: account.accountId, last_used_at: daysAgo(40) })
      .returning('id')
      .executeTakeFirstOrThrow();
    await db
      .insertInto('refresh_families')
      .values([
        { user_id: account.accountId, last_used_at: daysAgo(40), user_agent: 'over' },
        { user_id: account.accountId, last_used_at: daysAgo(1), user_agent: 'recent' },
      ])
      .execute();
    await db
      .insertInto('refresh_tokens')
      .values([
        { token_hash: 'expired', family_id, expires_at: daysAgo(0.01) },
        { token_hash: 'rotated', family_id, expires_at: daysAgo(-1), rotated_at: daysAgo(20) },
      ])
      .execute();
    await db
      .insertInto('mail_tokens')
      .values([
        { token_hash: 'old', user_id: account.accountId, kind: 'reset', expires_at: daysAgo(2) },
        { token_hash: 'new', user_id: account.accountId, kind: 'reset', expires_at: daysAgo(-1) },
      ])
      .execute();
    const mail = { recipient: 'a@b.c', text_body: '', html_body: '' };
    await db
      .insertInto('mail_outbox')
      .values([
        { ...mail, subject: 'sent', sent_at: daysAgo(8) },
        { ...mail, subject: 'given up', given_up_at: daysAgo(8) },
        { ...mail, subject: 'waiting', created_at: daysAgo(8) },
        { ...mail, subject: 'just sent', sent_at: daysAgo(6) },
      ])
      .execute();
    const event = { user_id: account.accountId, month: '2030-01', bytes: 1, occurred_at: daysAgo(300) };
    await db
      .insertInto('meter_events')
      .values([
        { ...event, identifier: 'long ago', sent_at: daysAgo(101) },
        { ...event, identifier: 'lately', sent_at: daysAgo(99) },
        { ...event, identifier: 'not yet', created_at: daysAgo(300) },
      ])
      .execute();
    await clean.run(fixture);
    const namesOf = async (query: { execute(): Promise<{ name: string }[]> }) =>
      (await query.execute()).map(({ name }) => name).toSorted();
    expect(await namesOf(db.selectFrom('refresh_tokens').select('token_hash as name'))).toEqual(['rotated']);
    expect(await namesOf(db.selectFrom('refresh_families').select('user_agent as name'))).toEqual(['', 'recent']);
    expect(await namesOf(db.selectFrom('mail_tokens').select('token_hash as name'))).toEqual(['new']);
    expect(await namesOf(db.selectFrom('mail_outbox').select('subject as name'))).toEqual(['just sent', 'waiting']);
    expect(await namesOf(db.selectFrom('meter_events').select('identifier as name'))).toEqual(['lately', 'not yet']);
  });

  it('deletes more rows than one statement handles, even if two processes run it', async () => {
    await sql`
      insert into mail_tokens (token_hash, user_id, kind, expires_at)
      select 'many ' || n, ${account.accountId}::uuid, 'verify', ${daysAgo(3)}::timestamptz from generate_series(1, 12000) n
    `.execute(fixture.db);
    await Promise.all([clean.run(fixture), clean.run(fixture)]);
    await clean.run(fixture);
    const left = await fixture.db.selectFrom('mail_tokens').select('token_hash').execute();
    expect(left).toEqual([{ token_hash: 'new' }]);
  });
});

describe('a job', () => {
  it('runs in one process at a time', async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let inside = false;
    const first = withJobLock(fixture.db, 99, async () => {
      inside = true;
      await held;
      return 'first';
    });
    await eventually(() => expect(inside).toBe(true));
    expect(await withJobLock(fixture.db, 99, async () => 'second')).toBeNull();
    expect(await withJobLock(fixture.db, 98, async () => 'another job')).toBe('another job');
    release();
    expect(await first).toBe('first');
    expect(await withJobLock(fixture.db, 99, async () => 'third')).toBe('third');
  });

  it('runs again after a failure, never overlaps, and is awaited on stop', async () => {
    const { clock } = fixture;
    let begun = 0;
    let finish = (): void => {};
    const job = {
      name: 'test',
      everyMs: 1000,
      firstAfterMs: 5000,
      run: () => {
        begun += 1;
        if (begun === 1) return Promise.reject(new Error('once'));
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
    };
    const jobs = new Jobs(fixture, [job]);
    jobs.start();
    await clock.advance(4999);
    expect(begun).toBe(0);
    await clock.advance(1);
    expect(begun).toBe(1);
    await clock.advance(5000);
    expect(begun).toBe(2);
    let stopped = false;
    const stop = jobs.stop().then(() => {
      stopped = true;
    });
    await clock.advance(1000);
    expect(stopped).toBe(false);
    finish();
    await stop;
    expect(clock.pendingTimers).toBe(0);
  });
});
