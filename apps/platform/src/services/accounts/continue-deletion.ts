// Background part of an account deletion, step by step. If a process dies, another process continues after the claim has expired; every
// step can be repeated safely.

import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { BillingContext } from '../billing/billing-account.ts';
import { endBilling } from '../billing/end-billing.ts';
import { writeAudit } from '../shared/audit.ts';
import { type DeletionFacts, deletionRetryMs, nextDeletionStep } from './account-deletion.rules.ts';
import { announceEnd } from './delete-account.ts';
import { eraseLog, eraseTraces } from './erase-traces.ts';

/** Maximum number of account deletions that a process works on at the same time. */
export const DELETIONS_AT_ONCE = 5;
/**
 * Lifetime of a claim on an account deletion. Another process takes over when the claim of a dead process has expired. Longer than the
 * calls to the payment processor.
 */
export const DELETION_CLAIM_MS = 60_000;

/** Claims account deletions that are due, so that no other process works on them until DELETION_CLAIM_MS have passed. */
export const claimDeletions = async (db: Db, now: number): Promise<string[]> => {
  const { rows } = await sql<{ user_id: string }>`
    update account_deletions set next_try_at = ${new Date(now + DELETION_CLAIM_MS)}
    where user_id in (
      select user_id from account_deletions
      where ended_at is null and next_try_at <= ${new Date(now)}
      order by next_try_at limit ${DELETIONS_AT_ONCE} for update skip locked
    ) returning user_id
  `.execute(db);
  return rows.map(({ user_id }) => user_id);
};

/** Works on the deletion of an account. Never throws: a failure is logged, recorded in the row, and retried later. */
export const continueDeletion = async (context: BillingContext, userId: string): Promise<void> => {
  const { db, clock, logger } = context;
  try {
    await eraseTraces(db, userId, clock.now());
    const waitMs = await takeSteps(context, userId);
    await note(db, userId, { next_try_at: new Date(clock.now() + waitMs), attempts: 0 });
  } catch (error) {
    logger.warn(
      { user_id: userId, ...(error instanceof Fault ? { code: error.code } : { err: error }) },
      'the deletion of an account is delayed; retrying',
    );
    await noteFailure(db, userId, clock.now());
  }
};

/** Takes as many steps of the deletion as are possible now. Returns how many milliseconds to wait before the next step. */
const takeSteps = async (context: BillingContext, userId: string): Promise<number> => {
  const { db, clock, logger } = context;
  for (;;) {
    const facts = await readFacts(db, userId);
    if (facts === null) return 0;
    const step = nextDeletionStep(facts, clock.now());
    switch (step.kind) {
      case 'erase-log':
      case 'erase-open':
        await eraseLog(db, userId, { open: step.kind === 'erase-open' });
        break;
      case 'wait':
        if (facts.openTunnels > 0) await db.transaction().execute((trx) => announceEnd(trx, userId));
        return step.ms;
      case 'end-subscription':
        await endBilling(context, userId);
        await note(db, userId, { subscription_ended_at: new Date(clock.now()) });
        break;
      case 'done':
        await finish(db, userId, clock.now());
        logger.info({ user_id: userId }, 'an account was deleted');
        return 0;
    }
  }
};

/**
 * Reads the current facts of an account deletion. Returns null if the deletion is done. The counts of tunnels are 1 if at least one
 * exists, otherwise 0.
 */
const readFacts = async (db: Db, userId: string): Promise<DeletionFacts | null> => {
  const { rows } = await sql<{ begun_at: Date; is_ended: boolean; has_open: boolean; has_ended: boolean }>`
    select begun_at, subscription_ended_at is not null as is_ended,
      exists (select from tunnel_log where user_id = ${userId} and unregistered_at is null) as has_open,
      exists (select from tunnel_log where user_id = ${userId} and unregistered_at is not null) as has_ended
    from account_deletions where user_id = ${userId} and ended_at is null
  `.execute(db);
  const [row] = rows;
  if (row === undefined) return null;
  return {
    begunAt: row.begun_at.getTime(),
    openTunnels: Number(row.has_open),
    endedTunnels: Number(row.has_ended),
    subscriptionEnded: row.is_ended,
  };
};

const finish = (db: Db, userId: string, now: number): Promise<void> =>
  db.transaction().execute(async (trx) => {
    await trx
      .updateTable('account_deletions')
      .set({ ended_at: new Date(now) })
      .where('user_id', '=', userId)
      .execute();
    await writeAudit(trx, { actor: 'system', action: 'user.erased', userId });
  });

interface Noted {
  readonly next_try_at?: Date;
  readonly attempts?: number;
  readonly subscription_ended_at?: Date;
}

const note = async (db: Db, userId: string, noted: Noted): Promise<void> => {
  await db.updateTable('account_deletions').set(noted).where('user_id', '=', userId).execute();
};

const noteFailure = async (db: Db, userId: string, now: number): Promise<void> => {
  const { attempts } = await db
    .updateTable('account_deletions')
    .set((row) => ({ attempts: row('attempts', '+', 1) }))
    .where('user_id', '=', userId)
    .returning('attempts')
    .executeTakeFirstOrThrow();
  await note(db, userId, { next_try_at: new Date(now + deletionRetryMs(attempts)) });
};
