// Plans are rows in the database, written from [platform.plans.*] at every start. A plan removed from the file stays valid for its
// accounts. Edges are notified of changed rights, because they rely on the rights while the platform is down.
import type { ServerConfig } from '@tunnel/config/server';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { type AnnouncedChange, announceChanges } from '../shared/edge-changes.ts';

/**
 * Maximum number of accounts for which edges get a separate notification when a plan in server.toml has changed. With more accounts,
 * edges are told to query all accounts again.
 */
export const PLAN_CHANGES_MAX = 1000;

type Trx = Transaction<Schema>;

export const upsertPlans = async (db: Db, plans: ServerConfig['platform']['plans']): Promise<void> => {
  const rows = Object.entries(plans).map(([name, plan]) => ({
    ...plan,
    name,
    tunnel_limit: plan.tunnel_limit ?? null,
    reserved_limit: plan.reserved_limit ?? null,
    domain_limit: plan.domain_limit ?? null,
  }));
  if (rows.length === 0) return;
  await db.transaction().execute(async (trx) => {
    const before = await lockPlans(
      trx,
      rows.map(({ name }) => name),
    );
    await trx
      .insertInto('plans')
      // Sorted by name, so that two processes starting at the same time lock the rows in the same order and cannot deadlock.
      .values(rows.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet((told) => ({
          tunnel_limit: told.ref('excluded.tunnel_limit'),
          allow_custom_subdomains: told.ref('excluded.allow_custom_subdomains'),
          monthly_minimum_cents: told.ref('excluded.monthly_minimum_cents'),
          price_cents_per_gb: told.ref('excluded.price_cents_per_gb'),
          reserved_limit: told.ref('excluded.reserved_limit'),
          domain_limit: told.ref('excluded.domain_limit'),
        })),
      )
      .execute();
    const changed = rows.filter((row) => hasOtherRights(row, before.get(row.name)));
    await announceChanges(
      trx,
      await newsOf(
        trx,
        changed.map(({ name }) => name),
      ),
    );
  });
};

interface Rights {
  readonly tunnel_limit: number | null;
  readonly allow_custom_subdomains: boolean;
}

const lockPlans = async (trx: Trx, names: readonly string[]): Promise<ReadonlyMap<string, Rights>> => {
  const rows = await trx
    .selectFrom('plans')
    .select(['name', 'tunnel_limit', 'allow_custom_subdomains'])
    .where('name', 'in', names)
    .orderBy('name')
    .forNoKeyUpdate()
    .execute();
  return new Map(rows.map((row) => [row.name, row]));
};

/** Returns true if the rights of an existing plan have changed. Prices do not matter to edges, and a new plan has no accounts yet. */
const hasOtherRights = (now: Rights, before: Rights | undefined): boolean =>
  before !== undefined &&
  (before.tunnel_limit !== now.tunnel_limit || before.allow_custom_subdomains !== now.allow_custom_subdomains);

/**
 * Returns the changes to announce for the accounts on the plans: one change per account, or a single change to make edges verify every
 * key again.
 */
const newsOf = async (trx: Trx, plans: readonly string[]): Promise<readonly AnnouncedChange[]> => {
  if (plans.length === 0) return [];
  const most = PLAN_CHANGES_MAX;
  const { rows } = await sql<{ id: string }>`
    select id from users where plan = any(${plans}::text[]) limit ${most + 1}
  `.execute(trx);
  if (rows.length > most) return [{ kind: 'forget' }];
  return rows.map(({ id }) => ({ kind: 'account-changed', accountId: id }));
};
