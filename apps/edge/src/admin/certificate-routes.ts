// The certificates of this edge over the REST, for its operator; and a renewal by hand, where the edge orders them by itself.
import { certificateRenewal, edgeCertificates } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { listCertificates, showCertificate } from './certificate-list.ts';
import {
  json,
  type KeyedRoutes,
  keyedRoute,
  operatorOnly,
  type RestDependencies,
  refused,
  requireOperator,
} from './rest-context.ts';

const listCertificatesRoute = keyedRoute({
  method: 'get',
  path: '/api/certificates',
  summary: 'The certificates that this edge shows or waits for: the admin token only',
  responses: {
    200: json(edgeCertificates, 'As they are now; never a key.'),
    403: operatorOnly,
  },
});

const renewCertificateRoute = keyedRoute({
  method: 'post',
  path: '/api/certificates/renew',
  summary: 'Order the certificate of a name anew, now: the admin token only, and an edge without a platform',
  request: { body: { required: true, content: { 'application/json': { schema: certificateRenewal } } } },
  responses: {
    202: { description: 'The order begins; GET /api/certificates says what becomes of it.' },
    400: refused('The body is not JSON, or has no name of 1 to 255 characters.'),
    403: operatorOnly,
    404: refused('There is no certificate for this name.'),
    409: refused('An order for it is under way, or this edge orders none: its platform does.'),
    503: refused('It cannot be written down: the disk is full.'),
  },
});

export const addCertificateRoutes = (routes: KeyedRoutes, { certificates }: RestDependencies): void => {
  routes.add(listCertificatesRoute, async (context) => {
    requireOperator(context);
    return context.json((await listCertificates(certificates)).map(showCertificate), 200);
  });
  routes.add(renewCertificateRoute, async (context) => {
    requireOperator(context);
    const name = context.req.valid('json').name.toLowerCase();
    if (certificates.coming?.renew === undefined) throw new Fault('CERTIFICATE_ORDERED_ELSEWHERE');
    const answer = await certificates.coming.renew(name);
    if (answer === 'unknown') throw new Fault('CERTIFICATE_UNKNOWN', { name });
    if (answer === 'busy') throw new Fault('CERTIFICATE_BUSY', { name });
    return context.body(null, 202);
  });
};
