// The certificates of this edge over the REST, for its operator; and a renewal by hand, where the edge orders them by itself.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { certificateRenewal, edgeCertificates } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import { listCertificates, showCertificate } from './certificate-list.ts';
import {
  json,
  keyRefusals,
  type RestDependencies,
  type RestEnv,
  refused,
  requireKey,
  withKey,
} from './rest-context.ts';

const listCertificatesRoute = createRoute({
  method: 'get',
  path: '/api/certificates',
  summary: 'The certificates that this edge shows or waits for: the admin token only',
  security: withKey,
  responses: {
    200: json(edgeCertificates, 'As they are now; never a key.'),
    ...keyRefusals,
    403: refused('The key is not the admin token.'),
  },
});

const renewCertificateRoute = createRoute({
  method: 'post',
  path: '/api/certificates/renew',
  summary: 'Order the certificate of a name anew, now: the admin token only, and an edge without a platform',
  security: withKey,
  request: { body: { required: true, content: { 'application/json': { schema: certificateRenewal } } } },
  responses: {
    202: { description: 'The order begins; GET /api/certificates says what becomes of it.' },
    400: refused('The body is not JSON, or has no name of 1 to 255 characters.'),
    ...keyRefusals,
    403: refused('The key is not the admin token.'),
    404: refused('There is no certificate for this name.'),
    409: refused('An order for it is under way, or this edge orders none: its platform does.'),
    503: refused('It cannot be written down: the disk is full.'),
  },
});

export const addCertificateRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  const { certificates } = deps;
  app.use(listCertificatesRoute.getRoutingPath(), requireKey(deps));
  app.openapi(listCertificatesRoute, async (context) => {
    refuseOthers(context);
    return context.json((await listCertificates(certificates)).map(showCertificate), 200);
  });
  app.use(renewCertificateRoute.getRoutingPath(), requireKey(deps));
  app.openapi(renewCertificateRoute, async (context) => {
    refuseOthers(context);
    const name = context.req.valid('json').name.toLowerCase();
    if (certificates.coming?.renew === undefined) throw new Fault('CERTIFICATE_ORDERED_ELSEWHERE');
    const answer = await certificates.coming.renew(name);
    if (answer === 'unknown') throw new Fault('CERTIFICATE_UNKNOWN', { name });
    if (answer === 'busy') throw new Fault('CERTIFICATE_BUSY', { name });
    return context.body(null, 202);
  });
};

const refuseOthers = (context: Context<RestEnv>): void => {
  if (context.get('caller').kind !== 'operator') throw new Fault('API_OPERATOR_ONLY');
};
