// Current entitlement of an account, read from the database and decided by entitlement.rules; and the error sent to edges if the account
// is closed.
import type { LinkRefusal } from '@tunnel/contract';
import type { Transaction } from 'kysely';
import {
  type AccountFacts,
  type ClosedReason,
  type Entitlement,
  entitlement,
} from '../../billing/rules/entitlement.rules.ts';
import { monthOf } from '../../billing/rules/rating.rules.ts';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { refusal } from '../shared/link-answers.ts';

/** Joined row of account, plan, billing and usage. Columns of a missing billing row are null. */
export interface EntitlementRow {
  readonly status: 'active' | 'suspended';
  readonly tunnel_limit: number | null;
  readonly allow_custom_subdomains: boolean;
  readonly price_cents_per_gb: number;
  readonly spend_cap_cents: number | null;
  readonly past_due_since: Date | null;
  readonly used_month: string | null;
  readonly used_bytes: number | null;
}

const factsOf = (row: EntitlementRow): AccountFacts => ({
  status: row.status,
  plan: {
    tunnelLimit: row.tunnel_limit,
    allowCustomSubdomains: row.allow_custom_subdomains,
    priceCentsPerGb: row.price_cents_per_gb,
  },
  usage: row.used_month === null ? null : { month: row.used_month, bytes: row.used_bytes ?? 0 },
  capCents: row.spend_cap_cents,
  pastDueSince: row.past_due_since?.getTime() ?? null,
});

export const entitlementOf = (row: EntitlementRow, now: number): Entitlement => entitlement(factsOf(row), now);

/** Reads the entitlement of an account. Returns undefined if the account does not exist. */
export const readEntitlement = async (
  db: Db | Transaction<Schema>,
  accountId: string,
  now: number,
): Promise<Entitlement | undefined> => {
  const row = await db
    .selectFrom('users')
    .innerJoin('plans', 'plans.name', 'users.plan')
    .leftJoin('billing_accounts as billed', 'billed.user_id', 'users.id')
    .leftJoin('metered_usage as usage', (on) =>
      on.onRef('usage.user_id', '=', 'users.id').on('usage.month', '=', monthOf(now)),
    )
    .select(['users.status', 'plans.tunnel_limit', 'plans.allow_custom_subdomains', 'plans.price_cents_per_gb'])
    .select([
      'billed.spend_cap_cents',
      'billed.past_due_since',
      'usage.month as used_month',
      'usage.bytes as used_bytes',
    ])
    .where('users.id', '=', accountId)
    .executeTakeFirst();
  return row === undefined ? undefined : entitlementOf(row, now);
};

export const refusalOf = ({ code, values }: ClosedReason): LinkRefusal => refusal(code, values);
