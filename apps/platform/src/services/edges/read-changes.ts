// Changes after a number, ready to be sent.
import type { EdgeChange } from '@tunnel/contract';
import { capState, monthOf } from '@tunnel/core';
import type { Db } from '../../db/database.ts';
import { rightsOf } from '../tunnels/account-rights.ts';

export interface ChangePage {
  readonly changes: readonly EdgeChange[];
  /** The number of the last one that was looked at; null: there is none after. */
  readonly last: number | null;
}

export interface ChangesWanted {
  readonly after: number;
  readonly limit: number;
  readonly now: number;
}

export const readChanges = async (db: Db, { after, limit, now }: ChangesWanted): Promise<ChangePage> => {
  const rows = await db
    .selectFrom('edge_changes as change')
    .leftJoin('users', 'users.id', 'change.account_id')
    .leftJoin('plans', 'plans.name', 'users.plan')
    .select(['change.id', 'change.kind', 'change.account_id', 'change.key_id', 'change.code', 'change.message'])
    .leftJoin('billing_accounts as billed', 'billed.user_id', 'change.account_id')
    .leftJoin('metered_usage as usage', (on) =>
      on.onRef('usage.user_id', '=', 'change.account_id').on('usage.month', '=', monthOf(now)),
    )
    .select(['users.plan', 'plans.tunnel_limit', 'plans.allow_custom_subdomains', 'plans.price_cents_per_gb'])
    .select(['billed.spend_cap_cents', 'usage.bytes'])
    .where('change.id', '>', after)
    .orderBy('change.id')
    .limit(limit)
    .execute();
  return { changes: rows.flatMap((row) => changeOf(row) ?? []), last: rows.at(-1)?.id ?? null };
};

interface ChangeRow {
  readonly id: number;
  readonly kind: string;
  readonly account_id: string | null;
  readonly key_id: string | null;
  readonly code: string | null;
  readonly message: string | null;
  readonly plan: string | null;
  readonly tunnel_limit: number | null;
  readonly allow_custom_subdomains: boolean | null;
  readonly price_cents_per_gb: number | null;
  readonly spend_cap_cents: number | null;
  readonly bytes: number | null;
}

/** null: there is nothing to say any more, because the account is gone, or is not over its cap any more. */
const changeOf = (row: ChangeRow): EdgeChange | null => {
  const { id, account_id } = row;
  if (row.kind === 'forget') return { kind: 'forget', id };
  if (account_id === null) return null;
  if (row.kind === 'key-revoked') return { kind: 'key-revoked', id, key_id: row.key_id ?? '', account_id };
  if (row.kind === 'account-closed') {
    // An edge that hears of it late would end what was opened since the cap was raised.
    if (row.code === 'SPEND_CAP_REACHED' && !isOverCap(row)) return null;
    return { kind: 'account-closed', id, account_id, code: row.code ?? '', message: row.message ?? '' };
  }
  if (row.plan === null) return null;
  const { plan, tunnel_limit } = row;
  const account = rightsOf({
    user_id: account_id,
    plan,
    tunnel_limit,
    allow_custom_subdomains: row.allow_custom_subdomains ?? false,
  });
  return { kind: 'account-changed', id, account };
};

const isOverCap = ({ bytes, price_cents_per_gb, spend_cap_cents }: ChangeRow): boolean =>
  capState({ bytes: bytes ?? 0, priceCentsPerGb: price_cents_per_gb ?? 0, capCents: spend_cap_cents }).reached;
