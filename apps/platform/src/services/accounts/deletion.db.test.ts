import { Fault } from '@tunnel/errors';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { deleteAccounts } from '../../jobs/delete-accounts.ts';
import { endNames } from '../../jobs/end-names.ts';
import { RESYNC_AFTER_MS, resyncBilling } from '../../jobs/resync-billing.ts';
import { subscribe } from '../billing/subscribe.ts';
import { syncAccount } from '../billing/sync-account.ts';
import { daysOf, NOON, questionOf } from '../edges/link.fixture.ts';
import { createKey } from '../keys/keys.ts';
import { verifyKey } from '../keys/verify-key.ts';
import { ask, DAY_MS, endpointOf, use } from '../names/names.fixture.ts';
import { reserve } from '../names/reserve.ts';
import { openTunnel } from '../tunnels/open-tunnel.ts';
import { DELETION_CLAIM_MS } from './continue-deletion.ts';
import { type DeletionFixture, type Owner, openDeletionFixture } from './deletion.fixture.ts';
import { deleteUser } from './operator-accounts.ts';

const OPERATOR = { kind: 'operator', name: 'root' } as const;
const LOOK_MS = 5000;
const SETTLE_MS = 60_000;
const RETRY_MAX_MS = 10 * 60_000;

let fixture: DeletionFixture;
beforeAll(async () => {
  fixture = await openDeletionFixture();
});
afterEach(() => {
  fixture.processor.mood = 'well';
  fixture.processor.afterEnd = () => {};
  fixture.onFlush = async () => {};
});
afterAll(() => fixture.close());

const remove = ({ email }: Pick<Owner, 'email'>): Promise<void> => deleteUser(fixture.context, OPERATOR, email);

/** Runs the job as a platform does each second. A killed run leaves everything unchanged. */
const runJob = (): Promise<void> => deleteAccounts(fixture.context).run(fixture.context);

/** Advances the clock and runs the job until the deletion has ended. */
const finish = async (owner: Owner): Promise<void> => {
  for (let turn = 0; turn < 20 && !(await isOver(owner)); turn += 1) {
    await fixture.clock.advance(SETTLE_MS);
    await runJob();
  }
  expect(await isOver(owner)).toBe(true);
};

const isOver = async ({ accountId }: Owner): Promise<boolean> => {
  const rows = fixture.database.db.selectFrom('account_deletions').select('ended_at');
  return (await rows.where('user_id', '=', accountId).executeTakeFirst())?.ended_at != null;
};

const actorOf = ({ accountId }: Owner) => ({ kind: 'user', userId: accountId }) as const;

const closingsOf = async (owner: Owner): Promise<number> =>
  (await fixture.changesOf(actorOf(owner))).filter((kind) => kind === 'account-closed').length;

const customerOf = ({ accountId }: Owner): string =>
  [...fixture.processor.customers.keys()].find((id) => id.includes(accountId)) ?? '';

const subscriptionOf = (owner: Owner) => fixture.processor.factsOf(customerOf(owner)).subscription?.status;

const endsOf = (owner: Owner): number =>
  fixture.processor.callsOf('endSubscriptions').filter((customerId) => customerId === customerOf(owner)).length;

const logOf = ({ accountId }: Owner) =>
  fixture.database.db.selectFrom('tunnel_log').select('tunnel_id').where('user_id', '=', accountId).execute();

describe('a deleted account', () => {
  it('leaves no personal data in a database dump, from the first moment on', async () => {
    const owner = await fixture.addOwner();
    const tunnelId = await fixture.openTunnel(owner);
    await fixture.tell({ kind: 'usage', tunnel_id: tunnelId, requests: 2, bytes: 500, at: NOON });
    expect(await fixture.leftOf(owner)).toEqual([...owner.personal, owner.tunnelName]);
    await remove(owner);
    expect(await fixture.leftOf(owner)).toEqual([]);
    await fixture.tell({ kind: 'closed', tunnel_id: tunnelId, at: NOON, abandoned: false });
    await finish(owner);
    expect(await fixture.leftOf(owner)).toEqual([]);
    // Daily sums and billing references stay, with a meaningless account ID.
    expect(await daysOf(fixture.database.db, owner.accountId)).toMatchObject([{ tunnels: 1, requests: 2, bytes: 500 }]);
    expect(await fixture.dump()).toContain(`cus_${owner.accountId}`);
    expect(await logOf(owner)).toEqual([]);
  });

  it('is announced to edges at once, and running requests create no key, tunnel or subscription', async () => {
    const owner = await fixture.addOwner();
    const actor = actorOf(owner);
    await remove(owner);
    expect(await closingsOf(owner)).toBe(1);
    const refused = { code: 'ACCESS_TOKEN_INVALID' };
    await expect(createKey(fixture.context, actor, { label: 'late' })).rejects.toMatchObject(refused);
    await expect(subscribe(fixture.context, actor)).rejects.toMatchObject(refused);
    const keyUses = { note: () => {} };
    expect(await verifyKey({ ...fixture.context, keyUses }, owner.tokenHash)).toMatchObject({
      ok: false,
      code: 'AUTH_TOKEN_REVOKED',
    });
    const edge = await fixture.edge();
    expect(await openTunnel(fixture.link, edge.actor, questionOf(edge, owner))).toMatchObject({ ok: false });
  });

  it('holds its names for the usual grace period, then frees them without a trace', async () => {
    const owner = await fixture.addOwner();
    const { link } = fixture;
    const edge = await fixture.edge();
    const held = owner.tunnelName.replace(/-$/, '');
    await use(link, edge, owner, held, { group_key_hash: 'red' });
    const { reservation } = await reserve(link, actorOf(owner), { kind: 'subdomain' });
    await remove(owner);
    const rows = await link.db.selectFrom('names').selectAll().where('user_id', '=', owner.accountId).execute();
    const released = { state: 'released', group_key_hash: null, released_at: new Date(link.clock.now()) };
    expect(rows).toMatchObject([released, released]);
    const change = await link.db
      .selectFrom('edge_changes')
      .selectAll()
      .where('name_label', '=', reservation.label)
      .execute();
    expect(change).toHaveLength(2);
    const stranger = await fixture.addOwner();
    const { answer } = await ask(link, edge, stranger, endpointOf(held));
    expect(answer).toMatchObject({ ok: false, code: 'TUNNEL_SUBDOMAIN_IN_USE' });
    await expect(reserve(link, actorOf(owner), { kind: 'subdomain' })).rejects.toMatchObject({
      code: 'ACCESS_TOKEN_INVALID',
    });
    const afterGrace = { now: () => link.clock.now() + 7 * DAY_MS } as typeof link.clock;
    await endNames(link.names).run({ ...link, clock: afterGrace });
    expect(await link.db.selectFrom('names').selectAll().where('user_id', '=', owner.accountId).execute()).toEqual([]);
  });

  it('is unknown to operators, and its address can be reused', async () => {
    const owner = await fixture.addOwner({ subscribed: false });
    await remove(owner);
    await expect(remove(owner)).rejects.toMatchObject({ code: 'USER_UNKNOWN' });
    await expect(remove({ ...owner, email: `deleted:${owner.accountId}` })).rejects.toMatchObject({
      code: 'USER_UNKNOWN',
    });
    const { email } = await fixture.addOwner({ subscribed: false });
    await fixture.database.db.updateTable('users').set({ email: owner.email }).where('email', '=', email).execute();
  });

  it('gets no billing mail any more, whatever the processor reports', async () => {
    const owner = await fixture.addOwner();
    const customerId = customerOf(owner);
    await remove(owner);
    fixture.processor.changeSubscription(customerId, { status: 'past_due' });
    await syncAccount(fixture.context, owner.accountId);
    const mails = fixture.database.db.selectFrom('mail_outbox').selectAll();
    expect(await mails.where('recipient', 'like', 'deleted:%').execute()).toEqual([]);
    await finish(owner);
    const reads = (): number => fixture.processor.callsOf('readCustomer').filter((id) => id === customerId).length;
    const before = reads();
    await fixture.clock.advance(RESYNC_AFTER_MS);
    await resyncBilling(fixture.context).run(fixture.context);
    expect(reads()).toBe(before);
  });
});

describe('the subscription of a deleted account', () => {
  it('ends after its tunnels have reported their usage, with the minimum and the remaining usage', async () => {
    const owner = await fixture.addOwner();
    const tunnelId = await fixture.openTunnel(owner);
    await remove(owner);
    await runJob();
    expect([subscriptionOf(owner), fixture.flushed.includes(owner.accountId)]).toEqual(['active', false]);
    // Edges that have not closed the tunnel are notified again.
    await fixture.clock.advance(LOOK_MS);
    await runJob();
    expect(await closingsOf(owner)).toBeGreaterThan(1);
    await fixture.tell(
      { kind: 'usage', tunnel_id: tunnelId, requests: 1, bytes: 700, at: NOON },
      { kind: 'closed', tunnel_id: tunnelId, at: NOON, abandoned: false },
    );
    await finish(owner);
    expect([subscriptionOf(owner), fixture.flushed.includes(owner.accountId)]).toEqual(['canceled', true]);
    expect(fixture.processor.callsOf('setFinalMinimum')).toContainEqual(
      expect.objectContaining({ customerId: customerOf(owner), wanted: true }),
    );
    expect(await daysOf(fixture.database.db, owner.accountId)).toMatchObject([{ bytes: 700 }]);
    expect(await fixture.planOf(actorOf(owner))).toBe('free');
  });

  it('also ends if its edge is silent for too long', async () => {
    const owner = await fixture.addOwner();
    await fixture.openTunnel(owner);
    await remove(owner);
    await finish(owner);
    expect(subscriptionOf(owner)).toBe('canceled');
    expect(await logOf(owner)).toEqual([]);
  });

  it('ends once the processor is available again, while the account is already gone', async () => {
    const owner = await fixture.addOwner();
    fixture.processor.mood = 'away';
    await remove(owner);
    for (let turn = 0; turn < 9; turn += 1) {
      await fixture.clock.advance(RETRY_MAX_MS);
      await runJob();
    }
    expect([subscriptionOf(owner), await isOver(owner), await fixture.leftOf(owner)]).toEqual(['active', false, []]);
    fixture.processor.mood = 'well';
    await fixture.clock.advance(RETRY_MAX_MS);
    await finish(owner);
    expect(subscriptionOf(owner)).toBe('canceled');
  });

  it('ends once even if the process dies right after the processor ended it', async () => {
    const owner = await fixture.addOwner();
    fixture.processor.afterEnd = () => {
      throw new Error('killed');
    };
    await remove(owner);
    await runJob();
    expect([subscriptionOf(owner), await isOver(owner)]).toEqual(['canceled', false]);
    fixture.processor.afterEnd = () => {};
    await finish(owner);
    expect(endsOf(owner)).toBe(1);
  });

  it('ends even if the processor refuses the last usage', async () => {
    const owner = await fixture.addOwner();
    fixture.onFlush = async () => {
      throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'no such meter' });
    };
    await remove(owner);
    await finish(owner);
    expect(subscriptionOf(owner)).toBe('canceled');
  });
});

describe('an account deletion', () => {
  it('resumes at any step after a process died', async () => {
    const owner = await fixture.addOwner();
    await fixture.openTunnel(owner);
    // Simulates a process that dies before the first follow-up step, while holding a claim on the deletion.
    await remove(owner);
    const { db } = fixture.database;
    const claimed = new Date(fixture.clock.now() + DELETION_CLAIM_MS);
    await db.updateTable('account_deletions').set({ next_try_at: claimed }).where('ended_at', 'is', null).execute();
    await runJob();
    expect(subscriptionOf(owner)).toBe('active');
    await fixture.clock.advance(DELETION_CLAIM_MS);
    await finish(owner);
    expect([subscriptionOf(owner), await fixture.leftOf(owner)]).toEqual(['canceled', []]);
  });

  it('runs once and completely even if two processes run it', async () => {
    const owner = await fixture.addOwner();
    await remove(owner);
    for (let turn = 0; turn < 4; turn += 1) {
      await Promise.all([runJob(), runJob()]);
      await fixture.clock.advance(SETTLE_MS);
    }
    expect([await isOver(owner), endsOf(owner)]).toEqual([true, 1]);
    const audits = await fixture.auditsOf(actorOf(owner));
    expect(audits.filter(({ action }) => action === 'user.erased')).toHaveLength(1);
  });

  it('erases a long tunnel log in batches', async () => {
    const owner = await fixture.addOwner({ subscribed: false });
    const ended = { user_id: owner.accountId, protocol: 'http', name: owner.tunnelName };
    const at = new Date(NOON);
    for (let page = 0; page < 3; page += 1) {
      const rows = Array.from({ length: 2000 }, (_, index) => ({
        ...ended,
        tunnel_id: `old-${page}-${index}`,
        registered_at: at,
        unregistered_at: at,
      }));
      await fixture.database.db.insertInto('tunnel_log').values(rows).execute();
    }
    await remove(owner);
    await runJob();
    expect(await logOf(owner)).toEqual([]);
  });

  it('leaves other accounts unchanged', async () => {
    const { user: bob } = await fixture.addSubscriber('bob');
    const owner = await fixture.addOwner();
    await remove(owner);
    await finish(owner);
    expect(await fixture.accountOf(bob)).toMatchObject({ subscription_status: 'active' });
    expect(await fixture.dump()).toContain('bob@example.com');
  });
});
