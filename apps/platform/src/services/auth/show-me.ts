// The caller as the API shows users.
import type { UserPublic } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { UserActor } from '../service-context.ts';
import type { AuthContext } from './auth-context.ts';

export const showMe = async ({ users }: Pick<AuthContext, 'users'>, { userId }: UserActor): Promise<UserPublic> => {
  const known = await users.find(userId);
  // It went between the check of the token and this.
  if (known === null) throw new Fault('ACCESS_TOKEN_INVALID');
  return known.user;
};
