// REST routes for the operator: list the certificates of the edge, and renew a certificate by hand if the edge itself orders
// certificates.
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
  summary: 'List the certificates in use or being issued (admin token only)',
  responses: {
    200: json(edgeCertificates, 'Current certificates, without private keys.'),
    403: operatorOnly,
  },
});

const renewCertificateRoute = keyedRoute({
  method: 'post',
  path: '/api/certificates/renew',
  summary: 'Renew a certificate now (admin token only, standalone edge only)',
  request: { body: { required: true, content: { 'application/json': { schema: certificateRenewal } } } },
  responses: {
    202: { description: 'The order was started. GET /api/certificates shows the result.' },
    400: refused('The body is not JSON, or `name` is not 1 to 255 characters long.'),
    403: operatorOnly,
    404: refused('There is no certificate for the name.'),
    409: refused('The certificate is being issued, or the platform issues the certificates of this edge.'),
    503: refused('The certificate cannot be stored because the disk is full.'),
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
    if (certificates.acmeCertificates?.renew === undefined) throw new Fault('CERTIFICATE_ORDERED_ELSEWHERE');
    const answer = await certificates.acmeCertificates.renew(name);
    if (answer === 'unknown') throw new Fault('CERTIFICATE_UNKNOWN', { name });
    if (answer === 'busy') throw new Fault('CERTIFICATE_BUSY', { name });
    return context.body(null, 202);
  });
};
