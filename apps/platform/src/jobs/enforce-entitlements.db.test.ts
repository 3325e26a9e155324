import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PAST_DUE_GRACE_MS } from '../billing/rules/subscription.rules.ts';
import { LIMITS } from '../limits.ts';
import { addBilledAccount } from '../services/billing/billed-account.fixture.ts';
import { heartbeat } from '../services/edges/heartbeat.ts';
import {
  type Account,
  addEdge,
  addKey,
  beatOf,
  createLinkFixture,
  type Edge,
  type LinkFixture,
  NOON,
  openedOf,
  questionOf,
} from '../services/edges/link.fixture.ts';
import { readChanges } from '../services/edges/read-changes.ts';
import { CLOSED_TUNNELS_PER_CHANGE } from '../services/shared/edge-changes.ts';
import { closeEntries } from '../services/tunnels/log-entries.ts';
import { openTunnel } from '../services/tunnels/open-tunnel.ts';
import { storeRecords } from '../services/tunnels/store-records.ts';
import { enforceEntitlements } from './enforce-entitlements.ts';
import { withJobLock } from './jobs.ts';

const PAST_DUE = 'the account is past due: a payment failed more than 7 days ago';

let fixture: LinkFixture;
let edge: Edge;
beforeAll(async () => {
  fixture = await createLinkFixture();
  edge = await addEdge(fixture);
});
beforeEach(() => fixture.clock.setWallClock(NOON));
afterEach(async () => {
  await fixture.db.deleteFrom('edge_changes').execute();
  await fixture.db.deleteFrom('billing_accounts').execute();
});
afterAll(() => fixture.close());

const run = () => enforceEntitlements.run(fixture);

let opened = 0;
/** Opens tunnels, one second apart. */
const open = async (account: Pick<Account, 'accountId' | 'keyId'>, count = 1): Promise<string[]> => {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    opened += 1;
    const tunnel_id = `tun_${opened}`;
    const question = questionOf(edge, account, { tunnel_id, at: NOON - 100_000 + opened * 1000 });
    expect(await openTunnel(fixture, edge.actor, question)).toEqual({ ok: true });
    ids.push(tunnel_id);
  }
  return ids;
};
const close = (ids: readonly string[]) =>
  fixture.db
    .updateTable('tunnel_log')
    .set({ unregistered_at: new Date(fixture.clock.now()) })
    .where('tunnel_id', 'in', ids)
    .execute();

/** Returns the changes that edges would read now. */
const told = async () =>
  (await readChanges(fixture.db, { after: 0, limit: 1000, now: fixture.clock.now() })).changes.map(
    ({ change: { id: _, ...change } }) => change,
  );
const setBilling = ({ accountId }: Account, change: Record<string, unknown>) =>
  fixture.db.updateTable('billing_accounts').set(change).where('user_id', '=', accountId).execute();
const endSubscription = async (account: Account) => {
  await fixture.db.updateTable('users').set({ plan: 'free' }).where('id', '=', account.accountId).execute();
  const limit_check_at = new Date(fixture.clock.now());
  await setBilling(account, { subscription_status: 'canceled', limit_check_at });
};
const checkAt = async ({ accountId }: Account) => {
  const accounts = fixture.db.selectFrom('billing_accounts').select('limit_check_at').where('user_id', '=', accountId);
  return (await accounts.executeTakeFirstOrThrow()).limit_check_at?.getTime() ?? null;
};

describe('tunnels of a past-due account', () => {
  it('are closed on every edge after seven days, with the reason', async () => {
    const account = await addBilledAccount(fixture.db, { pastDueSince: NOON });
    await open(account);
    fixture.clock.setWallClock(NOON + PAST_DUE_GRACE_MS - 1);
    await run();
    expect(await told()).toEqual([]);
    fixture.clock.setWallClock(NOON + PAST_DUE_GRACE_MS);
    await run();
    const closed = { kind: 'account-closed', account_id: account.accountId, code: 'ACCOUNT_PAST_DUE' };
    expect(await told()).toEqual([{ ...closed, message: PAST_DUE }]);
  });

  it("are left to another process that holds the job's lock", async () => {
    await open(await addBilledAccount(fixture.db, { pastDueSince: NOON }));
    fixture.clock.setWallClock(NOON + PAST_DUE_GRACE_MS);
    const lock = 4;
    await withJobLock(fixture.db, lock, run);
    expect(await told()).toEqual([]);
    await run();
    expect(await told()).toHaveLength(1);
  });

  it('are announced again only if some are still open after a while', async () => {
    const account = await addBilledAccount(fixture.db, { pastDueSince: NOON });
    const ids = await open(account);
    const over = NOON + PAST_DUE_GRACE_MS;
    for (const [afterMs, times] of [
      [0, 1],
      [LIMITS.CAP_CLOSED_AGAIN_MS - 1, 1],
      [LIMITS.CAP_CLOSED_AGAIN_MS, 2],
    ] as const) {
      fixture.clock.setWallClock(over + afterMs);
      await run();
      expect(await told()).toHaveLength(times);
    }
    await close(ids);
    fixture.clock.setWallClock(over + 3 * LIMITS.CAP_CLOSED_AGAIN_MS);
    await run();
    expect(await told()).toHaveLength(2);
  });

  it('stay open once the account has paid, even for an edge that reads the change late', async () => {
    const account = await addBilledAccount(fixture.db, { pastDueSince: NOON - PAST_DUE_GRACE_MS + 1 });
    await open(account);
    fixture.clock.setWallClock(NOON + 1000);
    await run();
    expect(await told()).toHaveLength(1);
    await setBilling(account, { past_due_since: null, subscription_status: 'active' });
    expect(await told()).toEqual([]);
    fixture.clock.setWallClock(NOON + 10 * LIMITS.CAP_CLOSED_AGAIN_MS);
    await run();
    expect(await told()).toEqual([]);
  });
});

describe('tunnels of an account with an ended subscription', () => {
  const over = (tunnel_ids: readonly string[]) => ({ kind: 'tunnels-closed', tunnel_ids });

  it('are checked again when an edge considered dead returns with them', async () => {
    const account = await addBilledAccount(fixture.db);
    const ids = await open(account, 11);
    await fixture.db.transaction().execute((trx) => closeEntries(trx, { ...edge.actor, at: new Date(NOON) }));
    await endSubscription(account);
    await run();
    expect([await told(), await checkAt(account)]).toEqual([[], null]);
    await heartbeat(fixture, edge.actor, beatOf(edge.runId));
    await run();
    expect(await told()).toMatchObject([over(ids.slice(10))]);
    await close(ids);
  });

  it('are checked when an edge reports tunnels accepted without asking the platform', async () => {
    const account = await addBilledAccount(fixture.db);
    const ids = await open(account, 10);
    await endSubscription(account);
    await run();
    expect([await told(), await checkAt(account)]).toEqual([[], null]);
    const record = openedOf(edge, account, 'tun_unasked', NOON);
    await storeRecords(fixture, edge.actor, {
      run_id: edge.runId,
      journal_id: 'journal_x',
      first: 1,
      records: [record],
    });
    await run();
    expect(await told()).toMatchObject([over(['tun_unasked'])]);
    await close([...ids, 'tun_unasked']);
  });

  it("are closed beyond the new plan's limit, newest first, but not those of unlimited keys", async () => {
    const account = await addBilledAccount(fixture.db);
    const free = await addKey(fixture.db, account.accountId, true);
    const ids = await open(account, 11);
    await open({ ...account, keyId: free.keyId }, 2);
    const newest = await open(account, 1);
    await run();
    expect(await told()).toEqual([]);
    await endSubscription(account);
    await run();
    const message = 'the subscription has ended: the plan `free` allows 10 tunnels, and this tunnel exceeds the limit';
    const tunnel_ids = [...newest, ids[10]];
    expect(await told()).toEqual([
      { kind: 'tunnels-closed', account_id: account.accountId, tunnel_ids, code: 'TUNNEL_OVER_PLAN', message },
    ]);
    // No further tunnel is closed after these tunnels have ended.
    await close(tunnel_ids.map(String));
    fixture.clock.setWallClock(NOON + LIMITS.CAP_CLOSED_AGAIN_MS);
    await run();
    expect([(await told()).length, await checkAt(account)]).toEqual([1, null]);
  });

  it('are announced again while open, in several changes if needed', async () => {
    const account = await addBilledAccount(fixture.db);
    const ids = await open(account, 10 + CLOSED_TUNNELS_PER_CHANGE + 1);
    await endSubscription(account);
    await run();
    await run();
    const named = async () => (await told()).map((change) => ('tunnel_ids' in change ? change.tunnel_ids : []));
    expect((await named()).map(({ length }) => length)).toEqual([CLOSED_TUNNELS_PER_CHANGE, 1]);
    expect((await named()).flat()).toEqual(ids.slice(10).toReversed());
    fixture.clock.setWallClock(NOON + LIMITS.CAP_CLOSED_AGAIN_MS);
    await run();
    expect(await named()).toHaveLength(4);
  });

  it('stay open after a new subscription, even for an edge that reads the change late', async () => {
    const account = await addBilledAccount(fixture.db);
    await open(account, 11);
    await endSubscription(account);
    await run();
    expect(await told()).toHaveLength(1);
    await setBilling(account, { subscription_status: 'active', limit_check_at: null });
    expect(await told()).toEqual([]);
    fixture.clock.setWallClock(NOON + 10 * LIMITS.CAP_CLOSED_AGAIN_MS);
    await run();
    expect(await told()).toEqual([]);
  });
});
