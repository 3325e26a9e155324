// Authenticates API calls: a user with an access token.

import { Fault } from '@tunnel/errors';
import { headerOf } from '@tunnel/http-shell';
import type { MiddlewareHandler } from 'hono';
import type { AuthContext } from '../../services/auth/auth-context.ts';
import { looksLikeApiKey } from '../../services/keys/api-key.rules.ts';
import type { LoggedInActor } from '../../services/shared/service-context.ts';
import type { PlatformEnv } from '../shared/platform-env.ts';

const BEARER = /^Bearer +([\w.~+/=-]+) *$/i;

type UserContext = Pick<AuthContext, 'accessTokens' | 'users'>;

/** Middleware that requires a valid access token. The state of the account is at most two seconds old. */
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
  // An API key in place of an access token gets a hint, whether the key is valid or not: the caller has the wrong kind of credential and
  // does not need a new key.
  if (token !== undefined && looksLikeApiKey(token)) throw new Fault('ACCESS_TOKEN_IS_API_KEY');
  const claims = token === undefined ? null : await accessTokens.check(token);
  if (claims === null) throw new Fault('ACCESS_TOKEN_INVALID');
  const known = await users.find(claims.userId);
  if (known === null) throw new Fault('ACCESS_TOKEN_INVALID');
  // Checked before the epoch. A suspension raises the epoch, but the owner should learn the real reason.
  if (known.user.status === 'suspended') throw new Fault('ACCOUNT_SUSPENDED');
  if (known.epoch !== claims.epoch) throw new Fault('ACCESS_TOKEN_INVALID');
  return { kind: 'user', userId: claims.userId, epoch: claims.epoch };
};
