// The bearer check in front of every route that is not public. Refused keys are counted by address before the next one is looked at.
import { Fault } from '@tunnel/errors';
import type { MiddlewareHandler } from 'hono';
import { callerAddress } from './caller-address.ts';
import type { RestDependencies, RestEnv } from './rest-context.ts';

const BEARER = /^bearer +(\S+) *$/i;

export const requireKey = (deps: RestDependencies): MiddlewareHandler<RestEnv> => {
  const { backend, authFailures, trustedProxies } = deps;
  return async (context, next) => {
    const token = BEARER.exec(context.req.header('authorization') ?? '')?.[1];
    // Asking without a key guesses nothing, so it is not counted.
    if (token === undefined) throw new Fault('AUTH_TOKEN_MISSING');
    const peer = context.env.incoming.socket.remoteAddress ?? '';
    const address = callerAddress(peer, context.req.header('x-forwarded-for'), trustedProxies);
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
