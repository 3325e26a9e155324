// The bearer check in front of every route that is not public. Refused keys are counted by address before the next one is looked at.
import { ACCOUNT_HEADER } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { equalInConstantTime } from '@tunnel/runtime';
import type { Context, MiddlewareHandler } from 'hono';
import type { RestDependencies, RestEnv } from './rest-context.ts';

const BEARER = /^bearer +(\S+) *$/i;

/** The platform's calls are of no key. */
const PLATFORM_KEY_ID = 'platform';

export const requireKey = (deps: RestDependencies): MiddlewareHandler<RestEnv> => {
  const { backend, authFailures, platformSecret } = deps;
  return async (context, next) => {
    const token = BEARER.exec(context.req.header('authorization') ?? '')?.[1];
    // ProxiedRequest without a key guesses nothing, so it is not counted.
    if (token === undefined) throw new Fault('AUTH_TOKEN_MISSING');
    if (equalInConstantTime(token, platformSecret.reveal())) {
      context.set('caller', { kind: 'account', accountId: accountAskedFor(context) });
      context.set('keyId', PLATFORM_KEY_ID);
      return next();
    }
    const address = visitorAddress(context, deps);
    const seconds = authFailures.blockedForSecs(address);
    if (seconds > 0) throw new Fault('AUTH_TOO_MANY_FAILURES', { seconds });
    const verdict = await backend.verifyKey(token);
    if (!verdict.ok) {
      if (!verdict.fault.retryable) authFailures.failed(address);
      throw verdict.fault;
    }
    context.set('caller', verdict.owner);
    context.set('keyId', verdict.keyId);
    await next();
  };
};

/** The platform asks for one account or not at all; from everybody else the header means nothing. */
const accountAskedFor = (context: Context<RestEnv>): string => {
  const accountId = context.req.header(ACCOUNT_HEADER) ?? '';
  if (accountId === '') throw new Fault('AUTH_TOKEN_INVALID');
  return accountId;
};

/** Without a socket it is the platform in this process that asks. */
export const visitorAddress = (context: Context<RestEnv>, { callerAddress }: RestDependencies): string => {
  const peer = context.env.incoming?.socket.remoteAddress ?? '';
  return callerAddress(peer, context.req.header('x-forwarded-for'));
};
