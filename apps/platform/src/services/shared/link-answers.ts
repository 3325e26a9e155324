// What several answers to edges are made of: why something is refused, and what an account may do.
import type { AccountRights, LinkRefusal } from '@tunnel/contract';
import { type ErrorCode, Fault, type FaultValues } from '@tunnel/errors';

/** A refusal as an edge passes it on to its client. */
export const refusal = (code: ErrorCode, values: FaultValues = {}): LinkRefusal => ({
  ok: false,
  code,
  message: new Fault(code, values).message,
});

export interface RightsRow {
  readonly user_id: string;
  readonly plan: string;
  readonly tunnel_limit: number | null;
  readonly allow_custom_subdomains: boolean;
}

export const toAccountRights = (row: RightsRow): AccountRights => ({
  account_id: row.user_id,
  plan: row.plan,
  tunnel_limit: row.tunnel_limit,
  allow_custom_subdomains: row.allow_custom_subdomains,
});
