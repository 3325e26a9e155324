// Reads announced changes after a number. Changes are kept for days. The content of a change is read at the time of sending, not at the
// time of the announcement.
import type { EdgeChange } from '@tunnel/contract';
import { monthOf } from '../../billing/rules/rating.rules.ts';
import type { Db } from '../../db/database.ts';
import { type EntitlementRow, entitlementOf, refusalOf } from '../plans/account-entitlement.ts';
import type { ReservedKind } from '../shared/edge-changes.ts';
import { toAccountRights } from '../shared/link-answers.ts';

export interface ChangePage {
  readonly changes: readonly ToldChange[];
  /** Number of the last row read; null if no rows follow. */
  readonly last: number | null;
}

export interface ToldChange {
  readonly change: EdgeChange;
  /** Region of the edges affected by the change; empty for all edges. */
  readonly regionId: string;
}

export interface ChangesWanted {
  readonly after: number;
  readonly limit: number;
  readonly now: number;
}

/** Reads changes after a number, ready to be sent to edges. */
export const readChanges = async (db: Db, { after, limit, now }: ChangesWanted): Promise<ChangePage> => {
  const rows = await db
    .selectFrom('edge_changes as change')
    .leftJoin('users', 'users.id', 'change.account_id')
    .leftJoin('plans', 'plans.name', 'users.plan')
    .select(['change.id', 'change.kind', 'change.account_id', 'change.key_id', 'change.code', 'change.message'])
    .select([
      'change.tunnel_ids',
      'change.name_kind',
      'change.name_region',
      'change.name_label',
      'change.certificate_id',
    ])
    .leftJoin('names as name', (on) =>
      on
        .onRef('name.kind', '=', 'change.name_kind')
        .onRef('name.region_id', '=', 'change.name_region')
        .onRef('name.label', '=', 'change.name_label')
        .on('name.state', '=', 'reserved'),
    )
    .select(['name.user_id as name_owner', 'name.group_key_hash as name_key_hash'])
    .leftJoin('own_domains', (on) =>
      on.onRef('own_domains.name', '=', 'change.domain').on('own_domains.state', '=', 'verified'),
    )
    .select(['change.domain', 'change.keeps_tunnels', 'own_domains.user_id as domain_holder'])
    .leftJoin('billing_accounts as billed', 'billed.user_id', 'change.account_id')
    .leftJoin('metered_usage as usage', (on) =>
      on.onRef('usage.user_id', '=', 'change.account_id').on('usage.month', '=', monthOf(now)),
    )
    .select(['users.plan', 'users.status', 'plans.tunnel_limit', 'plans.allow_custom_subdomains'])
    .select(['plans.price_cents_per_gb', 'billed.spend_cap_cents', 'billed.past_due_since'])
    .select(['billed.subscription_status', 'billed.cancels_at_period_end'])
    .select(['usage.month as used_month', 'usage.bytes as used_bytes'])
    .where('change.id', '>', after)
    .orderBy('change.id')
    .limit(limit)
    .execute();
  const told = rows.flatMap((row): ToldChange[] => {
    const change = changeOf(row, now);
    return change === null ? [] : [{ change, regionId: row.name_region ?? '' }];
  });
  return { changes: told, last: rows.at(-1)?.id ?? null };
};

type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

/** Row of a change with joined account columns, which are null if the account was deleted. */
interface ChangeRow extends Nullable<EntitlementRow> {
  readonly id: number;
  readonly kind: string;
  readonly account_id: string | null;
  readonly key_id: string | null;
  readonly code: string | null;
  readonly message: string | null;
  readonly tunnel_ids: string | null;
  readonly name_kind: string | null;
  readonly name_label: string | null;
  readonly name_owner: string | null;
  readonly name_key_hash: string | null;
  readonly domain: string | null;
  readonly keeps_tunnels: boolean | null;
  readonly domain_holder: string | null;
  readonly certificate_id: string | null;
  readonly plan: string | null;
  readonly subscription_status: string | null;
  readonly cancels_at_period_end: boolean | null;
}

/**
 * Converts a row to the change sent to edges. Returns null if the change is obsolete, because the account is gone, or because the closed
 * tunnels are allowed again.
 */
const changeOf = (row: ChangeRow, now: number): EdgeChange | null => {
  const { id, account_id } = row;
  if (row.kind === 'forget') return { kind: 'forget', id };
  if (row.kind === 'name-changed') return nameChangeOf(row);
  if (row.kind === 'domain-changed') return domainChangeOf(row);
  if (row.kind === 'certificate-changed') return { kind: row.kind, id, certificate_id: row.certificate_id ?? '' };
  if (account_id === null) return null;
  if (row.kind === 'key-revoked') return { kind: 'key-revoked', id, key_id: row.key_id ?? '', account_id };
  if (row.kind === 'account-closed') return closedChangeOf(row, account_id, now);
  if (row.kind === 'tunnels-closed') return tunnelsChangeOf(row, account_id);
  if (row.plan === null) return null;
  const { plan, tunnel_limit } = row;
  const account = toAccountRights({
    user_id: account_id,
    plan,
    tunnel_limit,
    allow_custom_subdomains: row.allow_custom_subdomains ?? false,
  });
  return { kind: 'account-changed', id, account };
};

const nameChangeOf = ({ id, name_kind, name_label, name_owner, name_key_hash }: ChangeRow): EdgeChange => ({
  kind: 'name-changed',
  id,
  name: {
    kind: name_kind as ReservedKind,
    label: name_label ?? '',
    account_id: name_owner,
    group_key_hash: name_key_hash,
  },
});

/** If an account holds the domain, edges close tunnels of other accounts in any case, so `keeps_tunnels` matters only without a holder. */
const domainChangeOf = ({ id, domain, domain_holder, keeps_tunnels }: ChangeRow): EdgeChange => ({
  kind: 'domain-changed',
  id,
  domain: domain ?? '',
  account_id: domain_holder,
  keeps_tunnels: domain_holder === null && keeps_tunnels === true,
});

const OF_BILLING = new Set(['SPEND_CAP_REACHED', 'ACCOUNT_PAST_DUE']);

/**
 * Change that closes an account. A closure for billing reasons is evaluated again at the time of sending: an edge that reads the change
 * late would otherwise close tunnels opened after the bill was settled. Returns null if the account is open again.
 */
const closedChangeOf = (row: ChangeRow, account_id: string, now: number): EdgeChange | null => {
  const { id, status, price_cents_per_gb, code, message } = row;
  const told = { kind: 'account-closed', id, account_id } as const;
  if (!OF_BILLING.has(code ?? '')) return { ...told, code: code ?? '', message: message ?? '' };
  if (status === null || price_cents_per_gb === null) return null;
  const allow_custom_subdomains = row.allow_custom_subdomains ?? false;
  const { closed } = entitlementOf({ ...row, status, price_cents_per_gb, allow_custom_subdomains }, now);
  if (closed === null) return null;
  const refused = refusalOf(closed);
  return { ...told, code: refused.code, message: refused.message };
};

/**
 * Change that closes tunnels above the limit of a plan. Returns null if the tunnels are allowed again, because of a new subscription or a
 * plan without a limit.
 */
const tunnelsChangeOf = (row: ChangeRow, account_id: string): EdgeChange | null => {
  const { id, subscription_status, cancels_at_period_end, tunnel_limit } = row;
  if (subscription_status !== 'canceled' || cancels_at_period_end === true || tunnel_limit === null) return null;
  const tunnel_ids = (row.tunnel_ids ?? '').split(' ').filter((tunnelId) => tunnelId !== '');
  return { kind: 'tunnels-closed', id, account_id, tunnel_ids, code: row.code ?? '', message: row.message ?? '' };
};
