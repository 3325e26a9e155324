// Compares the list of retention times with the tables of the database, docs/security.md and the cleanup. UPDATE_DOCS=1 npx vitest run
// --project database apps/platform/src/db/retention rewrites the table in the docs.
import { readFileSync, writeFileSync } from 'node:fs';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cleanUp } from '../jobs/clean-up.ts';
import {
  type Account,
  addAccount,
  addEdge,
  createLinkFixture,
  daysOf,
  type Edge,
  entryOf,
  type LinkFixture,
  NOON,
  questionOf,
  tunnelCountOf,
} from '../services/edges/link.fixture.ts';
import { closeEntries } from '../services/tunnels/log-entries.ts';
import { openTunnel } from '../services/tunnels/open-tunnel.ts';
import { storeRecords } from '../services/tunnels/store-records.ts';
import { listTunnels } from '../services/usage/tunnel-log.ts';
import { chartUsage, summarizeUsage } from '../services/usage/usage-sums.ts';
import { RETENTION } from './retention.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const KEPT = { audit_days: 400, tunnel_log_days: 400, unverified_user_days: 7 };
const FOR_EVER = { audit_days: 0, tunnel_log_days: 0, unverified_user_days: 0 };
const PAGE = new URL('../../../../docs/security.md', import.meta.url);
const TABLE = /<!-- kept -->[\s\S]*<!-- \/kept -->/;

let fixture: LinkFixture;
let account: Account;
let edge: Edge;
beforeAll(async () => {
  fixture = await createLinkFixture();
  account = await addAccount(fixture.db);
  edge = await addEdge(fixture);
});
afterAll(() => fixture.close());

const cleanAt = async (now: number, settings = KEPT): Promise<void> => {
  fixture.clock.setWallClock(now);
  await cleanUp(settings).run(fixture);
};

describe('the retention list', () => {
  it('names exactly the tables of the database', async () => {
    const { rows } = await sql<{ name: string }>`
      select table_name as name from information_schema.tables
      where table_schema = 'public' and table_name not like 'kysely_%'`.execute(fixture.db);
    expect(Object.keys(RETENTION).toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
  });

  it('matches docs/security.md to the letter', () => {
    const rows = Object.entries(RETENTION).map(
      ([table, kept]) => `| \`${table}\` | ${'text' in kept ? kept.text : kept.forEver} |`,
    );
    const wanted = ['<!-- kept -->', '| Table | Kept |', '|---|---|', ...rows, '<!-- /kept -->'].join('\n');
    if (process.env['UPDATE_DOCS'])
      writeFileSync(
        PAGE,
        readFileSync(PAGE, 'utf8').replace(TABLE, () => wanted),
      );
    expect(TABLE.exec(readFileSync(PAGE, 'utf8'))?.[0]).toBe(wanted);
  });
});

describe('the audit log', () => {
  const actions = async () =>
    (await fixture.db.selectFrom('audit_log').select('action').where('actor', '=', 'test').orderBy('id').execute()).map(
      ({ action }) => action,
    );

  it('is kept for the configured days, and only the cleanup can delete from it', async () => {
    const at = (days: number) => new Date(NOON + days * DAY_MS);
    await fixture.db
      .insertInto('audit_log')
      .values([
        { actor: 'test', action: 'first', at: at(0) },
        { actor: 'test', action: 'second', at: at(1) },
      ])
      .execute();
    await cleanAt(NOON + 400 * DAY_MS);
    expect(await actions()).toEqual(['first', 'second']);
    await cleanAt(NOON + 500 * DAY_MS, FOR_EVER);
    expect(await actions()).toEqual(['first', 'second']);
    await cleanAt(NOON + 400 * DAY_MS + 1);
    expect(await actions()).toEqual(['second']);
    for (const change of [
      sql`delete from audit_log where actor = 'test'`,
      sql`update audit_log set action = 'changed'`,
      sql`truncate audit_log`,
    ]) {
      await expect(change.execute(fixture.db)).rejects.toThrow('only ever added to');
    }
  });
});

describe('a table with a failing cleanup', () => {
  it('does not stop the cleanup of other tables, and its error is reported', async () => {
    const { db } = fixture;
    await sql`create function refuse_here() returns trigger language plpgsql as
      $$ begin raise exception 'not this one'; end $$`.execute(db);
    await sql`create trigger refuse_here before delete on users execute function refuse_here()`.execute(db);
    const at = new Date(NOON);
    await db.insertInto('mail_quotas').values({ recipient_hash: 'old', last_at: at }).execute();
    await db.insertInto('processor_events').values({ id: 'evt_old', type: 'x', received_at: at }).execute();
    await expect(cleanAt(NOON + 31 * DAY_MS)).rejects.toThrow('not this one');
    const left = await Promise.all([
      db.selectFrom('mail_quotas').select('recipient_hash').execute(),
      db.selectFrom('processor_events').select('id').execute(),
    ]);
    expect(left).toEqual([[], []]);
    await sql`drop trigger refuse_here on users`.execute(db);
  });
});

describe('the tunnel log', () => {
  it('loses ended tunnels after the configured days, but keeps open tunnels, daily sums and counts', async () => {
    const { db } = fixture;
    fixture.clock.setWallClock(NOON);
    const ended = questionOf(edge, account, { tunnel_id: 'tun_ended' });
    const living = questionOf(edge, account, { tunnel_id: 'tun_living' });
    for (const question of [ended, living]) {
      expect(await openTunnel(fixture, edge.actor, question)).toEqual({ ok: true });
    }
    const records = [
      { kind: 'usage', tunnel_id: 'tun_ended', requests: 3, bytes: 1000, at: NOON } as const,
      { kind: 'usage', tunnel_id: 'tun_living', requests: 1, bytes: 7, at: NOON } as const,
      { kind: 'closed', tunnel_id: 'tun_ended', at: NOON, abandoned: false } as const,
    ];
    await storeRecords(fixture, edge.actor, { run_id: edge.runId, journal_id: 'jrn', first: 1, records });
    const user = { kind: 'user', userId: account.accountId } as const;
    const shown = async (now = NOON) => {
      fixture.clock.setWallClock(now);
      return [
        await summarizeUsage(fixture, user),
        await chartUsage(fixture, user, 30),
        await tunnelCountOf(db, account.keyId),
      ];
    };
    const before = await shown();
    const names = async () => (await listTunnels(fixture, user, { limit: 10, offset: 0 })).map((row) => row.tunnel_id);
    await cleanAt(NOON + 400 * DAY_MS);
    expect((await names()).toSorted()).toEqual(['tun_ended', 'tun_living']);
    await cleanAt(NOON + 500 * DAY_MS, FOR_EVER);
    expect(await names()).toHaveLength(2);
    await cleanAt(NOON + 400 * DAY_MS + 1);
    expect(await names()).toEqual(['tun_living']);
    expect(await shown()).toEqual(before);
    // A late usage record for a deleted tunnel does not hold up the edge's journal.
    const late = [{ kind: 'usage', tunnel_id: 'tun_ended', requests: 1, bytes: 1, at: NOON } as const];
    const batch = { run_id: edge.runId, journal_id: 'jrn', first: 4, records: late };
    expect(await storeRecords(fixture, edge.actor, batch)).toMatchObject({ last_record: 4, refused: null });
  });
});

describe('a tunnel of a silent edge', () => {
  it('stays in the log for two months, so that its usage is billed once the edge returns', async () => {
    fixture.clock.setWallClock(NOON);
    const silent = await addEdge(fixture);
    const payer = await addAccount(fixture.db);
    const question = questionOf(silent, payer, { tunnel_id: 'tun_silent' });
    expect(await openTunnel(fixture, silent.actor, question)).toEqual({ ok: true });
    await fixture.db.transaction().execute((trx) => closeEntries(trx, { ...silent.actor, at: new Date(NOON) }));
    const short = { ...KEPT, tunnel_log_days: 1 };
    await cleanAt(NOON + 62 * DAY_MS, short);
    const used = { kind: 'usage', tunnel_id: 'tun_silent', requests: 1, bytes: 1000, at: NOON } as const;
    const batch = { run_id: silent.runId, journal_id: 'jrn', first: 1, records: [used] };
    await storeRecords(fixture, silent.actor, batch);
    expect(await daysOf(fixture.db, payer.accountId)).toMatchObject([{ bytes: 1000 }]);
    await cleanAt(NOON + 62 * DAY_MS + 1, short);
    expect(await entryOf(fixture.db, 'tun_silent')).toBeUndefined();
  });
});

describe('accounts with an unverified address', () => {
  const add = (email: string, change: Record<string, unknown> = {}) =>
    fixture.db
      .insertInto('users')
      .values({ email, plan: 'free', created_at: new Date(NOON), ...change })
      .returning('id')
      .executeTakeFirstOrThrow();
  const left = async () =>
    (await fixture.db.selectFrom('users').select('email').where('email', 'like', '%@kept.test').execute())
      .map(({ email }) => email.replace(/@.*/, ''))
      .toSorted();

  it('are deleted after the configured days, unless in use, verified, suspended or external', async () => {
    const waiting = await add('waiting@kept.test');
    await add('verified@kept.test', { email_verified_at: new Date(NOON) });
    await add('suspended@kept.test', { status: 'suspended' });
    await add('external@kept.test', { auth_method: 'github' });
    await add('later@kept.test', { created_at: new Date(NOON + DAY_MS) });
    const used = await add('used@kept.test');
    await fixture.db.insertInto('api_keys').values({ user_id: used.id, label: 'a', token_hash: 'used' }).execute();
    const token = { token_hash: 'of-waiting', user_id: waiting.id, kind: 'verify' } as const;
    await fixture.db
      .insertInto('mail_tokens')
      .values({ ...token, expires_at: new Date(NOON + 30 * DAY_MS) })
      .execute();
    const all = ['external', 'later', 'suspended', 'used', 'verified', 'waiting'];
    await cleanAt(NOON + 7 * DAY_MS);
    expect(await left()).toEqual(all);
    await cleanAt(NOON + 100 * DAY_MS, FOR_EVER);
    expect(await left()).toEqual(all);
    await cleanAt(NOON + 7 * DAY_MS + 1);
    expect(await left()).toEqual(all.filter((name) => name !== 'waiting'));
    const tokens = await fixture.db.selectFrom('mail_tokens').select('token_hash').execute();
    expect(tokens.filter(({ token_hash }) => token_hash === 'of-waiting')).toEqual([]);
  });
});

describe('connected apps', () => {
  const grantOf = async (userId: string, change: object) => {
    const client = { client_id: 'kept', client_host: 'kept', client_name: 'kept' };
    const values = { ...client, user_id: userId, scope: 'tunnels:read', resource: 'r', epoch: 0 };
    const row = fixture.db.insertInto('oauth_grants').values({ ...values, created_at: new Date(NOON), ...change });
    const { id: grant_id } = await row.returning('id').executeTakeFirstOrThrow();
    const code = { code_hash: grant_id, grant_id, redirect_uri: 'u', code_challenge: 'c' };
    await fixture.db
      .insertInto('oauth_codes')
      .values({ ...code, expires_at: new Date(NOON) })
      .execute();
    return grant_id;
  };
  const left = async () => {
    const { db } = fixture;
    const requests = db.selectFrom('oauth_requests');
    const tokens = db.selectFrom('oauth_refresh_tokens');
    return {
      requests: (await requests.select('id').execute()).map(({ id }) => id),
      tokens: (await tokens.select('token_hash').execute()).map(({ token_hash }) => token_hash),
      grants: (await db.selectFrom('oauth_grants').select('id').execute()).map(({ id }) => id),
      codes: (await db.selectFrom('oauth_codes').select('grant_id').execute()).map(({ grant_id }) => grant_id),
    };
  };

  it('are deleted with their codes a month after their last use; requests and tokens when they expire', async () => {
    const { db } = fixture;
    const { accountId } = await addAccount(db);
    const used = await grantOf(accountId, { last_used_at: new Date(NOON + DAY_MS) });
    const unused = await grantOf(accountId, {});
    const token = { token_hash: 'of-used', grant_id: used, expires_at: new Date(NOON + 31 * DAY_MS) };
    await db.insertInto('oauth_refresh_tokens').values(token).execute();
    const client = { client_id: 'c', client_host: 'c', client_name: 'c', redirect_uri: 'u', code_challenge: 'c' };
    const request = { id: 'ask', ...client, resource: 'r', scope: 'tunnels:read', expires_at: new Date(NOON + 1000) };
    await db.insertInto('oauth_requests').values(request).execute();
    await cleanAt(NOON + 1000);
    const all = [used, unused].toSorted();
    const sorted = async () => {
      const { grants, codes, ...rest } = await left();
      return { ...rest, grants: grants.toSorted(), codes: codes.toSorted() };
    };
    expect(await sorted()).toEqual({ requests: ['ask'], tokens: ['of-used'], grants: all, codes: all });
    await cleanAt(NOON + 31 * DAY_MS);
    expect(await sorted()).toEqual({ requests: [], tokens: ['of-used'], grants: all, codes: all });
    await cleanAt(NOON + 31 * DAY_MS + 1);
    expect(await sorted()).toEqual({ requests: [], tokens: [], grants: [used], codes: [used] });
    await cleanAt(NOON + 32 * DAY_MS + 1);
    expect(await sorted()).toEqual({ requests: [], tokens: [], grants: [], codes: [] });
  });
});
