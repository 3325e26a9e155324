// Plans are rows, written from [platform.plans.*] at each start. One that is no longer in the file stays for those who have it.
import type { ServerConfig } from '@tunnel/runtime';
import type { Db } from './database.ts';

export const upsertPlans = async (db: Db, plans: ServerConfig['platform']['plans']): Promise<void> => {
  const rows = Object.entries(plans).map(([name, plan]) => ({
    ...plan,
    name,
    tunnel_limit: plan.tunnel_limit ?? null,
  }));
  if (rows.length === 0) return;
  await db
    .insertInto('plans')
    // In one order, so that two processes that start at once do not wait for each other.
    .values(rows.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((told) => ({
        tunnel_limit: told.ref('excluded.tunnel_limit'),
        allow_custom_subdomains: told.ref('excluded.allow_custom_subdomains'),
        monthly_minimum_cents: told.ref('excluded.monthly_minimum_cents'),
        price_cents_per_gb: told.ref('excluded.price_cents_per_gb'),
      })),
    )
    .execute();
};
