// The keys of an account that can be used, newest first, with what their plan allows.
import type { ApiToken } from '@tunnel/contract';
import type { ServiceContext, UserActor } from '../service-context.ts';

export const listKeys = async ({ db }: Pick<ServiceContext, 'db'>, { userId }: UserActor): Promise<ApiToken[]> => {
  const rows = await db
    .selectFrom('api_keys as key')
    .innerJoin('users as user', 'user.id', 'key.user_id')
    .innerJoin('plans as plan', 'plan.name', 'user.plan')
    .select([
      'key.id',
      'key.label',
      'key.token_hash',
      'key.created_at',
      'key.last_used_at',
      'key.status',
      'key.unlimited',
      'key.tunnel_count',
      'plan.name as tier',
      'plan.tunnel_limit',
    ])
    .where('key.user_id', '=', userId)
    .where('key.status', '=', 'active')
    .orderBy('key.created_at', 'desc')
    .orderBy('key.id', 'desc')
    .execute();
  return rows.map((row) => ({
    ...row,
    created_at: row.created_at.toISOString(),
    last_used_at: row.last_used_at?.toISOString() ?? null,
    scope: null,
  }));
};
