// Routes under /internal/edge for certificates and challenges. Responses contain private keys, so an edge on a link that others could
// read gets no certificates.
import { challengeQuestion, EDGE_LINK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { headerOf, socketOf } from '@tunnel/http-shell';
import { TrustedProxies } from '@tunnel/rules/net';
import { TokenBuckets } from '@tunnel/rules/rate';
import type { Context, MiddlewareHandler } from 'hono';
import { LIMITS } from '../../../limits.ts';
import {
  answerChallenge,
  CHALLENGES,
  certificateLines,
  type EdgeCertificatesContext,
  edgeCertificate,
} from '../../../services/certificates/edge-certificates.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../../shared/platform-env.ts';
import { LINES, linesBody, readBody } from './edge-link-bodies.ts';
import { isPrivateLink } from './link-privacy.rules.ts';

export type EdgeCertificateDeps = RouteContext & Pick<EdgeCertificatesContext, 'certificates'>;

/** Maximum length of a certificate id quoted in an error message. */
const ID_SHOWN_CHARACTERS = 100;

/** Adds the routes. Must be called after the middleware that checks the edge's credential. */
export const addEdgeCertificateRoutes = (app: PlatformApp, context: EdgeCertificateDeps): void => {
  const path = `${EDGE_LINK_PATH}/certificates`;
  const privately = requirePrivateLink(context);
  app.use(path, privately);
  app.use(`${path}/*`, privately);

  app.get(path, (call) => {
    const kept = context.certificates();
    if (call.req.method === 'HEAD') return call.body(null, 200, LINES);
    const onBroken = (error: unknown): void => {
      context.logger.error({ err: error }, 'not every certificate was sent to an edge');
    };
    return call.body(linesBody(certificateLines(context, kept), onBroken), 200, LINES);
  });

  app.get(`${path}/:id`, async (call) => {
    const id = call.req.param('id');
    const found = await edgeCertificate(context, id);
    if (found === null) throw new Fault('CERTIFICATE_UNKNOWN', { name: id.slice(0, ID_SHOWN_CHARACTERS) });
    return call.json(found, 200);
  });

  const questions = new TokenBuckets(CHALLENGES);
  app.post(`${EDGE_LINK_PATH}/challenges`, async (call) => {
    const waitMs = questions.take(call.get('edge').edgeId, context.clock.monotonic());
    if (waitMs > 0) throw new Fault('EDGE_CHALLENGES_LIMIT', { seconds: Math.ceil(waitMs / 1000) });
    return call.json(await answerChallenge(context, await readBody(call, challengeQuestion)), 200);
  });
};

/**
 * Middleware that rejects calls over a link that others could read. Logs the rejection once per edge, because the edge retries
 * continuously.
 */
const requirePrivateLink = ({ settings, logger }: EdgeCertificateDeps): MiddlewareHandler<PlatformEnv> => {
  const proxies = new TrustedProxies(settings.trusted_proxies);
  const told = new Set<string>();
  return async (call, next) => {
    if (!isPrivateLink(linkOf(call), proxies)) {
      const fault = new Fault('EDGE_LINK_IN_CLEAR');
      const { edgeId } = call.get('edge');
      if (!told.has(edgeId) && told.size < LIMITS.LINK_EDGES_MAX) {
        told.add(edgeId);
        const fields = { code: fault.code, edge_id: edgeId, address: call.get('address') };
        logger.warn(fields, `no certificates sent to an edge: ${fault.message}. ${fault.next}`);
      }
      throw fault;
    }
    await next();
  };
};

const linkOf = (call: Context<PlatformEnv>) => {
  const socket = socketOf(call).incoming?.socket;
  return {
    // A request without a socket is a call within the process.
    peer: socket === undefined ? '127.0.0.1' : (socket.remoteAddress ?? ''),
    isTls: socket !== undefined && 'encrypted' in socket,
    forwardedFor: headerOf(call, 'x-forwarded-for'),
    forwardedProto: headerOf(call, 'x-forwarded-proto'),
  };
};
