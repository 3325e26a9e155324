// Ends tunnels on every edge that accounts are no longer entitled to: all tunnels of an account past due beyond the grace period, and the
// excess tunnels after a change to a smaller plan.

import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import { tunnelsOver } from '../billing/rules/entitlement.rules.ts';
import { PAST_DUE_GRACE_MS } from '../billing/rules/subscription.rules.ts';
import type { Schema } from '../db/schema.ts';
import { LIMITS } from '../limits.ts';
import { readEntitlement, refusalOf } from '../services/plans/account-entitlement.ts';
import { type AnnouncedChange, announceChanges, splitClosedTunnels } from '../services/shared/edge-changes.ts';
import { type Job, withJobLock } from './jobs.ts';

/** Interval between searches for accounts that are past due or over the limit of their plan. */
const ENTITLEMENTS_EVERY_MS = 5000;
/** Maximum number of past due or over-limit accounts handled in one transaction. */
const ENTITLEMENTS_ROWS = 200;

const LOCK = 4;

type Trx = Transaction<Schema>;
/** Result of one transaction: the number of checked accounts, and the changes to announce to edges. */
interface Enforced {
  readonly accounts: number;
  readonly changes: readonly AnnouncedChange[];
}

export const enforceEntitlements: Job = {
  name: 'enforce entitlements',
  everyMs: ENTITLEMENTS_EVERY_MS,
  run: async ({ db, clock, logger }) => {
    for (const closeSome of [closePastDue, closeOverLimit]) {
      let more = true;
      while (more) {
        const done = await withJobLock(db, LOCK, async (trx) => {
          const enforced = await closeSome(trx, clock.now());
          // The announcement comes last, after statements that may wait for a lock, because only one transaction at a time can announce.
          await announceChanges(trx, enforced.changes);
          return enforced;
        });
        if (done === null) return;
        if (done.changes.length > 0)
          logger.info({ changes: done.changes.length }, 'accounts are over the limits of their plan');
        more = done.accounts >= ENTITLEMENTS_ROWS;
      }
    }
  },
};

/**
 * Closes accounts past due beyond the grace period. Edges are notified again if tunnels are still open after a while, as for a spend cap.
 */
const closePastDue = async (trx: Trx, now: number): Promise<Enforced> => {
  const toldBefore = new Date(now - LIMITS.CAP_CLOSED_AGAIN_MS);
  const { rows } = await sql<{ user_id: string }>`
    select account.user_id from billing_accounts account
    where account.past_due_since <= ${new Date(now - PAST_DUE_GRACE_MS)}
      and (account.past_due_closed_at is null or account.past_due_closed_at <= ${toldBefore})
      and exists (select from tunnel_log entry where entry.user_id = account.user_id and entry.unregistered_at is null)
    order by account.user_id
    limit ${ENTITLEMENTS_ROWS}
    for no key update of account skip locked
  `.execute(trx);
  const changes: AnnouncedChange[] = [];
  for (const { user_id: accountId } of rows) {
    const closed = (await readEntitlement(trx, accountId, now))?.closed ?? null;
    if (closed !== null) changes.push({ kind: 'account-closed', accountId, ...wordsOf(refusalOf(closed)) });
  }
  await sql`
    update billing_accounts set past_due_closed_at = ${new Date(now)}
    where user_id = any(${rows.map(({ user_id }) => user_id)}::uuid[])
  `.execute(trx);
  return { accounts: rows.length, changes };
};

const wordsOf = ({ code, message }: { readonly code: string; readonly message: string }) => ({ code, message });

interface LimitedRow {
  readonly user_id: string;
  readonly plan: string;
}

/**
 * Closes the tunnels over the plan's limit. Accounts are checked repeatedly until no tunnel is over the limit, because an edge may be
 * unreachable and a client may be reconnecting.
 */
const closeOverLimit = async (trx: Trx, now: number): Promise<Enforced> => {
  // The `users` row is locked, too. A tunnel opened meanwhile waits for the lock and is judged by the current plan.
  const { rows } = await sql<LimitedRow>`
    select account.user_id, users.plan from billing_accounts account
    join users on users.id = account.user_id
    where account.limit_check_at <= ${new Date(now)}
    order by account.user_id
    limit ${ENTITLEMENTS_ROWS}
    for no key update of account, users skip locked
  `.execute(trx);
  const changes: AnnouncedChange[] = [];
  for (const { user_id: accountId, plan } of rows) {
    const closing = await overLimit(trx, { accountId, plan, now });
    const limit_check_at = closing.length === 0 ? null : new Date(now + LIMITS.CAP_CLOSED_AGAIN_MS);
    await trx.updateTable('billing_accounts').set({ limit_check_at }).where('user_id', '=', accountId).execute();
    changes.push(...closing);
  }
  return { accounts: rows.length, changes };
};

const overLimit = async (
  trx: Trx,
  { accountId, plan, now }: { readonly accountId: string; readonly plan: string; readonly now: number },
): Promise<AnnouncedChange[]> => {
  const limit = (await readEntitlement(trx, accountId, now))?.tunnelLimit ?? null;
  if (limit === null) return [];
  const open = await trx
    .selectFrom('tunnel_log as entry')
    .leftJoin('api_keys as key', 'key.id', 'entry.key_id')
    .select(['entry.tunnel_id as tunnelId', 'key.unlimited'])
    .where('entry.user_id', '=', accountId)
    .where('entry.unregistered_at', 'is', null)
    .orderBy('entry.registered_at')
    .orderBy('entry.id')
    .execute();
  const over = tunnelsOver(
    limit,
    open.map(({ tunnelId, unlimited }) => ({ tunnelId, unlimited: unlimited ?? false })),
  );
  const tunnelIds = over.map(({ tunnelId }) => tunnelId);
  const words = wordsOf(new Fault('TUNNEL_OVER_PLAN', { plan, limit }));
  return splitClosedTunnels({ kind: 'tunnels-closed', accountId, tunnelIds, ...words });
};
