// Shared parts of responses to edges: rejections, and the rights of an account.
import type { AccountRights, LinkRefusal } from '@tunnel/contract';
import { type ErrorCode, Fault, type FaultValues } from '@tunnel/errors';

/** Rejection with code and message, which an edge forwards to its client. */
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
