// Ends the tunnels of accounts over the spend cap on every edge, and sends a notice mail when an account reaches or approaches the cap.

import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import {
  CAP_NOTICES,
  type CapState,
  capState,
  monthOf,
  showDollars,
  usageCents,
} from '../billing/rules/rating.rules.ts';
import type { Schema } from '../db/schema.ts';
import { LIMITS } from '../limits.ts';
import { queueMail } from '../services/mail/mail-template.ts';
import { capMail } from '../services/mail/mails.ts';
import { announceChanges } from '../services/shared/edge-changes.ts';
import { type Job, withJobLock } from './jobs.ts';

/** Interval between searches for accounts over or near their spend cap. */
const CAPS_EVERY_MS = 5000;
/** Maximum number of accounts handled in one transaction. */
export const CAPS_ROWS = 200;

const LOCK = 3;
const [NEAR, ALL] = CAP_NOTICES;

type Trx = Transaction<Schema>;

export const enforceCaps = ({ publicUrl }: { readonly publicUrl: string }): Job => ({
  name: 'enforce caps',
  everyMs: CAPS_EVERY_MS,
  run: async ({ db, clock, logger }) => {
    for (;;) {
      const done = await withJobLock(db, LOCK, (trx) => enforceSome(trx, publicUrl, clock.now()));
      if (done === null) return;
      if (done.closed > 0) logger.info({ accounts: done.closed }, 'accounts reached their spend cap');
      if (done.accounts < CAPS_ROWS) return;
    }
  },
});

interface CappedRow {
  readonly user_id: string;
  readonly email: string;
  readonly cap: number;
  readonly bytes: number;
  readonly price: number;
  /** True if the account has open tunnels and edges were not notified recently. */
  readonly to_close: boolean;
}

type Capped = CappedRow & CapState;

/**
 * Enforces the caps of some accounts. Statements that may wait for a lock run before the announcements, because only one transaction at a
 * time can announce.
 */
const enforceSome = async (
  trx: Trx,
  publicUrl: string,
  now: number,
): Promise<{ readonly accounts: number; readonly closed: number }> => {
  const month = monthOf(now);
  const due = (await findDue(trx, month, now)).map((row): Capped => ({ ...row, ...stateOf(row) }));
  const done = new Set<Capped>();
  for (const account of due) if (await notify(trx, account, { publicUrl, month, now })) done.add(account);
  const closing = due.filter(({ to_close, reached }) => to_close && reached);
  if (closing.length > 0) await close(trx, closing, now);
  for (const account of closing) done.add(account);
  return { accounts: done.size, closed: closing.length };
};

const stateOf = ({ bytes, price, cap }: CappedRow): CapState =>
  capState({ bytes, priceCentsPerGb: price, capCents: cap });

/**
 * Finds the accounts to handle: the cap is reached with tunnels still open, or a notice of this month has not been mailed. While an
 * account's cap is being changed, the account is locked and left for the next run.
 */
const findDue = async (trx: Trx, month: string, now: number): Promise<readonly CappedRow[]> => {
  const toldBefore = new Date(now - LIMITS.CAP_CLOSED_AGAIN_MS);
  const isUntold = (percent: number) => sql`not exists (
    select from cap_notices notice
    where notice.user_id = account.user_id and notice.month = ${month} and notice.percent = ${percent}
  )`;
  const { rows } = await sql<CappedRow>`
    select account.user_id, users.email, account.spend_cap_cents as cap, coalesce(usage.bytes, 0) as bytes,
      plans.price_cents_per_gb as price, tunnels.to_close
    from billing_accounts account
    join users on users.id = account.user_id and users.deleted_at is null
    join plans on plans.name = users.plan and plans.price_cents_per_gb > 0
    left join metered_usage usage on usage.user_id = account.user_id and usage.month = ${month}
    cross join lateral (
      select account.spend_cap_cents as cap,
        floor(coalesce(usage.bytes, 0)::numeric * plans.price_cents_per_gb / 1000000000) as used
    ) cents
    cross join lateral (
      select (account.cap_closed_at is null or account.cap_closed_at <= ${toldBefore}) and exists (
        select from tunnel_log entry where entry.user_id = account.user_id and entry.unregistered_at is null
      ) as to_close
    ) tunnels
    where account.spend_cap_cents is not null and cents.used * 100 >= cents.cap * ${NEAR}::int and (
      (cents.used >= cents.cap and tunnels.to_close)
      or (cents.cap > 0 and cents.used >= cents.cap and ${isUntold(ALL)})
      or (cents.used < cents.cap and ${isUntold(NEAR)})
    )
    order by account.user_id
    limit ${CAPS_ROWS}
    for no key update of account skip locked
  `.execute(trx);
  return rows;
};

/** Queues the notice mail, at most once per month and percentage. Returns true if a mail was queued. */
const notify = async (
  trx: Trx,
  { user_id, email, notice, cap, bytes, price }: Capped,
  { publicUrl, month, now }: { readonly publicUrl: string; readonly month: string; readonly now: number },
): Promise<boolean> => {
  if (notice === null) return false;
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('cap_notices')
    .values({ user_id, month, percent: notice, at: new Date(now) })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 0n) return false;
  const news = { percent: notice, capCents: cap, usedCents: usageCents(bytes, price) };
  await queueMail(trx, capMail(publicUrl, email, news), { userId: user_id, now });
  return true;
};

const close = async (trx: Trx, closing: readonly Capped[], now: number): Promise<void> => {
  const ids = closing.map(({ user_id }) => user_id);
  await sql`
    update billing_accounts set cap_closed_at = ${new Date(now)} where user_id = any(${ids}::uuid[])
  `.execute(trx);
  const changes = closing.map(({ user_id: accountId, cap }) => {
    const { code, message } = new Fault('SPEND_CAP_REACHED', { cap: showDollars(cap) });
    return { kind: 'account-closed', accountId, code, message } as const;
  });
  await announceChanges(trx, changes);
};
