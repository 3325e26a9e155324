// Responses to http-01 challenges on the platform's own port, for a platform without an edge or behind the operator's proxy.
import { Fault } from '@tunnel/errors';
import { TokenBucket } from '@tunnel/rules/rate';
import {
  answerChallenge,
  CHALLENGES,
  type EdgeCertificatesContext,
} from '../../../services/certificates/edge-certificates.ts';
import { CHALLENGE_PATH } from '../../shared/paths.ts';
import type { PlatformApp, RouteContext } from '../../shared/platform-env.ts';

const TOKEN = /^[\w-]{1,200}$/;

export const addChallengeRoutes = (
  app: PlatformApp,
  context: RouteContext & Pick<EdgeCertificatesContext, 'certificates'>,
): void => {
  const questions = new TokenBucket(CHALLENGES);
  app.get(`${CHALLENGE_PATH}:token`, async (call) => {
    const token = call.req.param('token');
    const isAsked = TOKEN.test(token) && questions.take(context.clock.monotonic());
    const { challenge } = isAsked ? await answerChallenge(context, { token }) : { challenge: null };
    if (challenge?.type !== 'http-01') throw new Fault('API_NOT_FOUND', { path: call.req.path });
    return call.body(challenge.key_authorization, 200, { 'content-type': 'application/octet-stream' });
  });
};
