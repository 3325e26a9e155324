// Who is asking: a user, by an access token.

import { Fault } from '@tunnel/errors';
import { headerOf } from '@tunnel/http-shell';
import type { MiddlewareHandler } from 'hono';
import type { AuthContext } from '../../services/auth/auth-context.ts';
import { looksLikeApiKey } from '../../services/keys/api-key.rules.ts';
import type { LoggedInActor } from '../../services/shared/service-context.ts';
import type { PlatformEnv } from '../shared/platform-env.ts';

const BEARER = /^Bearer +([\w.~+/=-]+) *$/i;

type UserContext = Pick<AuthContext, 'accessTokens' | 'users'>;

/** Who is asking: the bearer's access token, and the account behind it as it was at most two seconds ago. */
export const requireUser =
  (deps: UserContext): MiddlewareHandler<PlatformEnv> =>
  async (context, next) => {
    context.set('actor', await actorOf(deps, headerOf(context, 'authorization')));
    await next();
  };

const actorOf = async (
  { accessTokens, users }: UserContext,
  authorization: string | undefined,
): Promise<LoggedInActor> => {
  if (authorization === undefined) throw new Fault('ACCESS_TOKEN_MISSING');
  const token = BEARER.exec(authorization)?.[1];
  // Whatever became of the key: who sends one looks for the wrong door, not for a new key.
  if (token !== undefined && looksLikeApiKey(token)) throw new Fault('ACCESS_TOKEN_IS_API_KEY');
  const claims = token === undefined ? null : await accessTokens.check(token);
  if (claims === null) throw new Fault('ACCESS_TOKEN_INVALID');
  const known = await users.find(claims.userId);
  if (known === null) throw new Fault('ACCESS_TOKEN_INVALID');
  // Before the epoch: suspending raises it, and the owner should learn why.
  if (known.user.status === 'suspended') throw new Fault('ACCOUNT_SUSPENDED');
  if (known.epoch !== claims.epoch) throw new Fault('ACCESS_TOKEN_INVALID');
  return { kind: 'user', userId: claims.userId, epoch: claims.epoch };
};
