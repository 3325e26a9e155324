import { createLogger } from '@tunnel/runtime';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Database } from '../db/database.ts';
import { LIMITS } from '../limits.ts';
import { addBilledAccount, setMetered } from '../services/billing/billed-account.fixture.ts';
import { setSpendCap } from '../services/billing/spend-cap.ts';
import {
  type Account,
  addEdge,
  createLinkFixture,
  type Edge,
  type LinkFixture,
  NOON,
  openedOf,
} from '../services/edges/link.fixture.ts';
import { storeRecords } from '../services/tunnels/store-records.ts';
import { CAPS_ROWS, enforceCaps } from './enforce-caps.ts';

const CENT = 100_000_000;
const JULY = Date.UTC(2030, 6, 1);
const job = enforceCaps({ publicUrl: 'https://tunnel.example' });

let fixture: LinkFixture;
let edge: Edge;
beforeAll(async () => {
  fixture = await createLinkFixture();
  edge = await addEdge(fixture);
});
beforeEach(() => fixture.clock.setWallClock(NOON));
afterEach(async () => {
  for (const table of ['edge_changes', 'mail_outbox', 'cap_notices'] as const) {
    await fixture.db.deleteFrom(table).execute();
  }
  await fixture.db.updateTable('billing_accounts').set({ spend_cap_cents: null }).execute();
});
afterAll(() => fixture.close());

let journals = 0;
/** Opens a tunnel with the given usage, as reported by an edge. */
const carry = async (account: Account, bytes: number, at = NOON): Promise<string> => {
  journals += 1;
  const journal_id = `jrn_${journals}`;
  const id = `tun_${journals}`;
  const usage = { kind: 'usage', tunnel_id: id, requests: 1, bytes, at } as const;
  const records = [openedOf(edge, account, id, at), usage];
  await storeRecords(fixture, edge.actor, { run_id: edge.runId, journal_id, first: 1, records });
  return id;
};
const close = (tunnelId: string) =>
  fixture.db
    .updateTable('tunnel_log')
    .set({ unregistered_at: new Date(fixture.clock.now()) })
    .where('tunnel_id', '=', tunnelId)
    .execute();
const setCap = ({ accountId }: Account, spend_cap_cents: number | null) =>
  setSpendCap(fixture, { kind: 'user', userId: accountId }, { spend_cap_cents });

const closings = () =>
  fixture.db
    .selectFrom('edge_changes')
    .select(['account_id', 'code', 'message'])
    .where('kind', '=', 'account-closed')
    .orderBy('id')
    .execute();
const mails = () =>
  fixture.db
    .selectFrom('mail_outbox')
    .select(['recipient', 'subject', 'text_body'])
    .orderBy('created_at')
    .orderBy('subject')
    .execute();
const subjects = async () => (await mails()).map(({ subject }) => subject);

describe('tunnels of an account over its spend cap', () => {
  it('are closed on every edge with the message of the contract', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    await carry(account, 500 * CENT - 1);
    await job.run(fixture);
    expect(await closings()).toEqual([]);
    await carry(account, 1);
    await job.run(fixture);
    expect(await closings()).toEqual([
      { account_id: account.accountId, code: 'SPEND_CAP_REACHED', message: 'spend cap of $5.00 reached' },
    ]);
  });

  it('cause no closing and no mail once the account is deleted', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 1 });
    await carry(account, CENT);
    const before = await subjects();
    await fixture.db
      .updateTable('users')
      .set({ deleted_at: new Date(NOON) })
      .where('id', '=', account.accountId)
      .execute();
    await job.run(fixture);
    expect([await closings(), await subjects()]).toEqual([[], before]);
  });

  it('are announced again only if some are still open after a while', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 1 });
    const id = await carry(account, CENT);
    for (const afterMs of [0, 5000, LIMITS.CAP_CLOSED_AGAIN_MS - 1]) {
      fixture.clock.setWallClock(NOON + afterMs);
      await job.run(fixture);
      expect(await closings()).toHaveLength(1);
    }
    fixture.clock.setWallClock(NOON + LIMITS.CAP_CLOSED_AGAIN_MS);
    await job.run(fixture);
    expect(await closings()).toHaveLength(2);
    await close(id);
    fixture.clock.setWallClock(NOON + 3 * LIMITS.CAP_CLOSED_AGAIN_MS);
    await job.run(fixture);
    expect(await closings()).toHaveLength(2);
  });

  it('are left open below the cap and in the next month, and nothing is announced without open tunnels', async () => {
    const idle = await addBilledAccount(fixture.db, { capCents: 1 });
    const under = await addBilledAccount(fixture.db, { capCents: 101 });
    const next = await addBilledAccount(fixture.db, { capCents: 1 });
    await setMetered(fixture.db, idle.accountId, 5 * CENT);
    await carry(under, 100 * CENT);
    await carry(next, CENT);
    await close(`tun_${journals}`);
    fixture.clock.setWallClock(JULY);
    await carry(next, 0, JULY);
    await job.run(fixture);
    expect(await closings()).toEqual([]);
  });

  it('are closed by a cap of 0 or a lowered cap, but not after the cap was raised', async () => {
    const account = await addBilledAccount(fixture.db);
    await carry(account, 7 * CENT);
    await setCap(account, 0);
    await job.run(fixture);
    expect(await closings()).toMatchObject([{ message: 'spend cap of $0.00 reached' }]);
    // A new cap is a new reason, so its closing is announced without waiting half a minute.
    await setCap(account, 7);
    await job.run(fixture);
    expect(await closings()).toMatchObject([{}, { message: 'spend cap of $0.07 reached' }]);
    await setCap(account, 8);
    fixture.clock.setWallClock(NOON + 60_000);
    await job.run(fixture);
    expect(await closings()).toHaveLength(2);
  });

  it('are closed for any number of accounts, and once if two processes run the job', async () => {
    const count = 2 * CAPS_ROWS + 1;
    const { rows: accounts } = await sql<{ accountId: string }>`
      with made as (
        insert into users (email, plan) select 'many-' || n || '@example.com', 'payg' from generate_series(1, ${count}::int) n
        returning id
      ), billed as (
        insert into billing_accounts (user_id, metered_from, spend_cap_cents) select id, ${new Date(NOON)}::timestamptz, 1 from made
      )
      select id as "accountId" from made
    `.execute(fixture.db);
    await storeRecords(fixture, edge.actor, {
      run_id: edge.runId,
      journal_id: 'jrn_many',
      first: 1,
      records: accounts.flatMap((account) => [
        openedOf(edge, { ...account, keyId: 'none' }, `tun_of_${account.accountId}`),
        { kind: 'usage', tunnel_id: `tun_of_${account.accountId}`, requests: 1, bytes: CENT, at: NOON } as const,
      ]),
    });
    const logger = createLogger({ format: 'json', level: 'silent' });
    const other = new Database({ url: fixture.database.url, logger, connections: 2 });
    try {
      await Promise.all([job.run(fixture), job.run({ ...fixture, db: other.db })]);
      await job.run(fixture);
    } finally {
      await other.close();
    }
    const told = (await closings()).map(({ account_id }) => account_id);
    expect(told).toHaveLength(count);
    expect(new Set(told)).toEqual(new Set(accounts.map(({ accountId }) => accountId)));
    expect(await mails()).toHaveLength(count);
  });
});

describe('mails about a spend cap', () => {
  it('are sent at 80 % and at 100 %, once each per month', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    await carry(account, 399 * CENT);
    await job.run(fixture);
    expect(await mails()).toEqual([]);
    await carry(account, CENT);
    for (const _ of [1, 2]) await job.run(fixture);
    expect(await subjects()).toEqual(['80 % of your spend limit used']);
    fixture.clock.setWallClock(NOON + 1000);
    await carry(account, 100 * CENT);
    for (const _ of [1, 2]) await job.run(fixture);
    expect(await subjects()).toEqual(['80 % of your spend limit used', 'Spend limit of $5.00 reached']);
    expect((await mails())[1]).toMatchObject({
      recipient: account.email,
      text_body: expect.stringContaining('https://tunnel.example/app/billing'),
    });
    // Another cap in the same month causes no mail, because both levels were mailed already.
    await setCap(account, 501);
    await setCap(account, 500);
    await job.run(fixture);
    expect(await mails()).toHaveLength(2);
    fixture.clock.setWallClock(JULY);
    await carry(account, 450 * CENT, JULY);
    await job.run(fixture);
    expect(await mails()).toHaveLength(3);
  });

  it('are combined if both levels are reached together, and skipped for a cap of 0', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    await carry(account, 700 * CENT);
    const none = await addBilledAccount(fixture.db, { capCents: 0 });
    await carry(none, 700 * CENT);
    await job.run(fixture);
    expect(await subjects()).toEqual(['Spend limit of $5.00 reached']);
    expect(await closings()).toHaveLength(2);
  });
});
