// Changes what the caller may change about the own account: the name that is shown.
import type { UserChange, UserPublic } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { UserActor } from '../service-context.ts';
import type { AuthContext } from './auth-context.ts';
import { presentUser, SHOWN_USER_COLUMNS } from './present-user.ts';

export const updateMe = async (
  { db, users }: Pick<AuthContext, 'db' | 'users'>,
  { userId }: UserActor,
  { display_name }: UserChange,
): Promise<UserPublic> => {
  const row = await db
    .updateTable('users')
    .set({ display_name })
    .where('id', '=', userId)
    .returning([...SHOWN_USER_COLUMNS])
    .executeTakeFirst();
  users.forget(userId);
  if (row === undefined) throw new Fault('ACCESS_TOKEN_INVALID');
  return presentUser(row);
};
