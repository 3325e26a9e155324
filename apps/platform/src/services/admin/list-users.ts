// The accounts as an operator sees them, by their addresses, a page at a time.
import type { OperatorContext } from '../operator-context.ts';

export interface ListedUser {
  readonly id: string;
  readonly email: string;
  readonly status: 'active' | 'suspended';
  readonly plan: string;
  readonly emailVerified: boolean;
  readonly createdAt: Date;
  readonly openTunnels: number;
}

export interface UserPage {
  readonly limit?: number;
  /** The address of the last one of the page before. */
  readonly after?: string;
}

const PAGE = 1000;

export const listUsers = async (
  { db }: Pick<OperatorContext, 'db'>,
  { limit = PAGE, after }: UserPage = {},
): Promise<ListedUser[]> => {
  let query = db
    .selectFrom('users')
    .select(['id', 'email', 'status', 'plan', 'email_verified_at', 'created_at'])
    .select((row) =>
      row
        .selectFrom('tunnel_log')
        .select((rows) => rows.fn.countAll<number>().as('open'))
        .whereRef('tunnel_log.user_id', '=', 'users.id')
        .where('unregistered_at', 'is', null)
        .as('open_tunnels'),
    )
    .orderBy('email')
    .limit(limit);
  if (after !== undefined) query = query.where('email', '>', after);
  const rows = await query.execute();
  return rows.map((row) => ({
    id: row.id,
    email: row.email,
    status: row.status,
    plan: row.plan,
    emailVerified: row.email_verified_at !== null,
    createdAt: row.created_at,
    openTunnels: row.open_tunnels ?? 0,
  }));
};
