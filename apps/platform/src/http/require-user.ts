// Who is asking: the bearer's access token, and the account behind it as it was at most two seconds ago.
import { Fault } from '@tunnel/errors';
import { headerOf } from '@tunnel/http-shell';
import type { MiddlewareHandler } from 'hono';
import type { AuthContext } from '../services/auth/auth-context.ts';
import type { UserActor } from '../services/service-context.ts';
import type { PlatformEnv } from './platform-env.ts';

const BEARER = /^Bearer +([\w.~+/=-]+) *$/i;

type Context = Pick<AuthContext, 'accessTokens' | 'users'>;

export const requireUser =
  (needs: Context): MiddlewareHandler<PlatformEnv> =>
  async (context, next) => {
    context.set('actor', await actorOf(needs, headerOf(context, 'authorization')));
    await next();
  };

const actorOf = async ({ accessTokens, users }: Context, authorization: string | undefined): Promise<UserActor> => {
  if (authorization === undefined) throw new Fault('ACCESS_TOKEN_MISSING');
  const token = BEARER.exec(authorization)?.[1];
  const claims = token === undefined ? null : await accessTokens.check(token);
  if (claims === null) throw new Fault('ACCESS_TOKEN_INVALID');
  const known = await users.find(claims.userId);
  if (known === null) throw new Fault('ACCESS_TOKEN_INVALID');
  // Before the epoch: suspending raises it, and the owner should learn why.
  if (known.user.status === 'suspended') throw new Fault('ACCOUNT_SUSPENDED');
  if (known.epoch !== claims.epoch) throw new Fault('ACCESS_TOKEN_INVALID');
  return { kind: 'user', userId: claims.userId };
};
