// Account operations for operators: list accounts, suspend and restore an account, assign a plan.

import { Fault } from '@tunnel/errors';
import { normalizeAddress } from '@tunnel/rules/sign-in';
import type { Transaction } from 'kysely';
import { isPayg } from '../../billing/rules/rating.rules.ts';
import type { Schema } from '../../db/schema.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import { announceChange } from '../shared/edge-changes.ts';
import type { OperatorActor, OperatorContext } from '../shared/service-context.ts';

export interface ListedUser {
  readonly id: string;
  readonly email: string;
  readonly status: 'active' | 'suspended';
  readonly plan: string;
  readonly emailVerified: boolean;
  readonly createdAt: Date;
  readonly openTunnels: number;
}

export interface UserPage {
  readonly limit?: number;
  /** Address of the last account of the previous page. */
  readonly after?: string;
}

const PAGE = 1000;

/** Returns a page of the list of accounts for operators, ordered by address. */
export const listUsers = async (
  { db }: Pick<OperatorContext, 'db'>,
  { limit = PAGE, after }: UserPage = {},
): Promise<ListedUser[]> => {
  let query = db
    .selectFrom('users')
    .select(['id', 'email', 'status', 'plan', 'email_verified_at', 'created_at'])
    .select((row) =>
      row
        .selectFrom('tunnel_log')
        .select((rows) => rows.fn.countAll<number>().as('open'))
        .whereRef('tunnel_log.user_id', '=', 'users.id')
        .where('unregistered_at', 'is', null)
        .as('open_tunnels'),
    )
    .where('deleted_at', 'is', null)
    .orderBy('email')
    .limit(limit);
  if (after !== undefined) query = query.where('email', '>', after);
  const rows = await query.execute();
  return rows.map((row) => ({
    id: row.id,
    email: row.email,
    status: row.status,
    plan: row.plan,
    emailVerified: row.email_verified_at !== null,
    createdAt: row.created_at,
    openTunnels: row.open_tunnels ?? 0,
  }));
};

/**
 * Suspends an account: its sessions and tunnels end everywhere, and signing in is rejected. Returns `changed: false` if the account was
 * suspended already.
 */
export const suspend = async (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  email: string,
): Promise<{ changed: boolean }> =>
  db.transaction().execute(async (trx) => {
    const account = await lockAccountByEmail(trx, email);
    if (account.status === 'suspended') return { changed: false };
    await trx
      .updateTable('users')
      .set((row) => ({ status: 'suspended' as const, epoch: row('epoch', '+', 1) }))
      .where('id', '=', account.id)
      .execute();
    await trx
      .updateTable('refresh_families')
      .set({ revoked_at: new Date(clock.now()) })
      .where('user_id', '=', account.id)
      .where('revoked_at', 'is', null)
      .execute();
    await writeAudit(trx, { actor: actorName(actor), action: 'user.suspended', userId: account.id });
    const { code, message } = new Fault('ACCOUNT_SUSPENDED');
    await announceChange(trx, { kind: 'account-closed', accountId: account.id, code, message });
    return { changed: true };
  });

/** Restores a suspended account. Its users have to sign in again. Returns `changed: false` if the account was not suspended. */
export const restore = async (
  { db }: Pick<OperatorContext, 'db'>,
  actor: OperatorActor,
  email: string,
): Promise<{ changed: boolean }> =>
  db.transaction().execute(async (trx) => {
    const account = await lockAccountByEmail(trx, email);
    if (account.status === 'active') return { changed: false };
    await trx.updateTable('users').set({ status: 'active' }).where('id', '=', account.id).execute();
    await writeAudit(trx, { actor: actorName(actor), action: 'user.restored', userId: account.id });
    await announceChange(trx, { kind: 'account-changed', accountId: account.id });
    return { changed: true };
  });

/**
 * Assigns another plan to an account. Open tunnels stay open, even above the new limit. Returns `changed: false` if the account had the
 * plan already.
 */
export const setPlan = async (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  { email, plan }: { readonly email: string; readonly plan: string },
): Promise<{ changed: boolean }> =>
  db.transaction().execute(async (trx) => {
    const account = await lockAccountByEmail(trx, email);
    const { price } = await findPlan(trx, plan);
    if (account.plan === plan) return { changed: false };
    await trx.updateTable('users').set({ plan }).where('id', '=', account.id).execute();
    if (isPayg({ priceCentsPerGb: price })) await meterFrom(trx, account.id, new Date(clock.now()));
    const details = { from: account.plan, to: plan };
    await writeAudit(trx, { actor: actorName(actor), action: 'user.plan-set', userId: account.id, details });
    await announceChange(trx, { kind: 'account-changed', accountId: account.id });
    return { changed: true };
  });

const findPlan = async (trx: Transaction<Schema>, name: string): Promise<{ readonly price: number }> => {
  const plans = await trx.selectFrom('plans').select(['name', 'price_cents_per_gb as price']).orderBy('name').execute();
  const found = plans.find((plan) => plan.name === name);
  if (found !== undefined) return found;
  throw new Fault('PLAN_UNKNOWN', { plan: name, plans: plans.map((plan) => plan.name).join(', ') });
};

/**
 * Starts metering an account on a pay-as-you-go plan: the cost estimate and the spend cap apply from now on, even without a subscription.
 */
const meterFrom = async (trx: Transaction<Schema>, userId: string, now: Date): Promise<void> => {
  await trx
    .insertInto('billing_accounts')
    .values({ user_id: userId, metered_from: now })
    .onConflict((conflict) =>
      conflict
        .column('user_id')
        .doUpdateSet((held) => ({ metered_from: held.fn.coalesce('billing_accounts.metered_from', held.val(now)) })),
    )
    .execute();
};

export interface FoundAccount {
  readonly id: string;
  readonly email: string;
  readonly status: 'active' | 'suspended';
  readonly plan: string;
}

/** Finds the account with the address given by an operator, and locks its row until the transaction ends. Throws USER_UNKNOWN. */
export const lockAccountByEmail = async (trx: Transaction<Schema>, email: string): Promise<FoundAccount> => {
  const address = normalizeAddress(email);
  const account = await trx
    .selectFrom('users')
    .select(['id', 'email', 'status', 'plan'])
    .where('email', '=', address)
    .where('deleted_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (account === undefined) throw new Fault('USER_UNKNOWN', { email: address });
  return account;
};
