// Whose key this is, and what its account may do, as edges are told it.
import type { AccountRights, KeyAnswer, LinkRefusal } from '@tunnel/contract';
import { type ErrorCode, Fault, type FaultValues } from '@tunnel/errors';
import type { ServiceContext } from '../service-context.ts';

export interface KeyUseNotes {
  /** The key was used just now. */
  note(keyId: string): void;
}

export const verifyKey = async (
  { db, keyUses }: Pick<ServiceContext, 'db'> & { readonly keyUses: KeyUseNotes },
  tokenHash: string,
): Promise<KeyAnswer> => {
  const row = await db
    .selectFrom('api_keys')
    .innerJoin('users', 'users.id', 'api_keys.user_id')
    .innerJoin('plans', 'plans.name', 'users.plan')
    .select(['api_keys.id as key_id', 'api_keys.status as key_status', 'api_keys.unlimited', 'api_keys.user_id'])
    .select(['users.status as account_status', 'users.plan', 'plans.tunnel_limit', 'plans.allow_custom_subdomains'])
    .where('api_keys.token_hash', '=', tokenHash)
    .executeTakeFirst();
  if (row === undefined) return refusal('AUTH_TOKEN_INVALID');
  if (row.key_status !== 'active') return refusal('AUTH_TOKEN_REVOKED');
  if (row.account_status !== 'active') return refusal('ACCOUNT_SUSPENDED');
  keyUses.note(row.key_id);
  return { ok: true, key_id: row.key_id, unlimited: row.unlimited, account: rightsOf(row) };
};

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

/** A refusal as an edge passes it on to its client. */
export const refusal = (code: ErrorCode, values: FaultValues = {}): LinkRefusal => ({
  ok: false,
  code,
  message: new Fault(code, values).message,
});
