// What an account may do, as edges are told it.
import type { AccountRights } from '@tunnel/contract';

export interface RightsRow {
  readonly user_id: string;
  readonly plan: string;
  readonly tunnel_limit: number | null;
  readonly allow_custom_subdomains: boolean;
}

export const rightsOf = (row: RightsRow): AccountRights => ({
  account_id: row.user_id,
  plan: row.plan,
  tunnel_limit: row.tunnel_limit,
  allow_custom_subdomains: row.allow_custom_subdomains,
});
