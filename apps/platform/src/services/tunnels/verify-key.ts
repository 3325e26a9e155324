// Whose key this is, and what its account may do.
import type { KeyAnswer } from '@tunnel/contract';
import type { ServiceContext } from '../service-context.ts';
import { rightsOf } from './account-rights.ts';
import { refusal } from './refusal.ts';

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
