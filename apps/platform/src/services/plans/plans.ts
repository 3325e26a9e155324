// Plans are rows, written from [platform.plans.*] at each start. One that is no longer in the file stays for those who have it.
// Edges hear of what changed for accounts: they go by it while the platform is away.
import type { ServerConfig } from '@tunnel/config/server';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { type AnnouncedChange, announceChanges } from '../shared/edge-changes.ts';

/** Accounts that edges are told of by name when their plan has changed in server.toml; of more, edges ask by themselves. */
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
      // In one order, so that two processes that start at once do not wait for each other.
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

/** Prices are the platform's own affair; a plan that is new has no accounts. */
const hasOtherRights = (now: Rights, before: Rights | undefined): boolean =>
  before !== undefined &&
  (before.tunnel_limit !== now.tunnel_limit || before.allow_custom_subdomains !== now.allow_custom_subdomains);

/** Each account by name, or that all are to be asked for. */
const newsOf = async (trx: Trx, plans: readonly string[]): Promise<readonly AnnouncedChange[]> => {
  if (plans.length === 0) return [];
  const most = PLAN_CHANGES_MAX;
  const { rows } = await sql<{ id: string }>`
    select id from users where plan = any(${plans}::text[]) limit ${most + 1}
  `.execute(trx);
  if (rows.length > most) return [{ kind: 'forget' }];
  return rows.map(({ id }) => ({ kind: 'account-changed', accountId: id }));
};
