// Own domains of an account over HTTP.
import { z } from '@hono/zod-openapi';
import { newDomain, ownDomain, ownDomains } from '@tunnel/contract';
import {
  addDomain,
  checkDomain,
  type DomainsContext,
  listDomains,
  readDomain,
  removeDomain,
} from '../../../services/domains/own-domains.ts';
import type { PlatformApp, UserRoutes } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, jsonBody, refused, userRoutes, writesPerDay } from '../../shared/route-parts.ts';

const userRoute = userRoutes(EXTENSIONS);
const params = z.object({ id: z.string().meta({ description: 'The id of the domain.' }) });
const unknown = refused('No such domain, or not yours.', 'DOMAIN_UNKNOWN');

const listRoute = userRoute('get', '/domains', {
  summary: 'Your own domains, the records to set, and their certificates',
  responses: { 200: json(ownDomains, 'In every state.') },
});

const readRoute = userRoute('get', '/domains/{id}', {
  summary: 'One own domain',
  request: { params },
  responses: { 200: json(ownDomain, 'As the last look found it.'), 404: unknown },
});

const addRoute = userRoute('post', '/domains', {
  summary: 'Add an own domain: it is yours once DNS has your token',
  request: { body: jsonBody(newDomain) },
  responses: {
    200: json(ownDomain, 'You have it already; whether a certificate is wanted is as you say now, or as before.'),
    201: json(ownDomain, 'It is looked at after 5 s, and again and again; or at once: POST /domains/{id}/check.'),
    400: refused(
      'Not a name that can be yours: no host name, an address, one label, or one of this server.',
      'DOMAIN_INVALID',
      {
        domain: 'localhost',
        reason: 'a domain needs at least two labels',
      },
    ),
    403: refused('The plan allows no more; or the account is suspended.', 'DOMAIN_LIMIT', { limit: 3 }),
    409: refused('Only this machine reaches the server, so no record can point to it.', 'DOMAIN_LOCAL_SERVER', {
      domain: 'localhost',
    }),
    429: writesPerDay,
  },
});

const checkRoute = userRoute('post', '/domains/{id}/check', {
  summary: 'Look for the records at once',
  request: { params },
  responses: {
    200: json(ownDomain, 'As this look found it. A resolver that does not answer changes no state.'),
    404: unknown,
    429: refused(
      'It was looked at less than 5 s ago, or several others of yours are right now; see Retry-After.',
      'DOMAIN_CHECK_TOO_SOON',
      {
        seconds: 4,
      },
    ),
  },
});

const removeRoute = userRoute('delete', '/domains/{id}', {
  summary: 'Remove an own domain: its tunnels are closed, its certificate and key are destroyed',
  request: { params },
  responses: { 204: { description: 'It is removed.' }, 404: unknown },
});

export const addDomainRoutes = (app: PlatformApp, deps: DomainsContext & UserRoutes): void => {
  app.use('/domains/*', deps.requireUser);
  app.openapi(listRoute, async (context) => context.json(await listDomains(deps, context.get('actor')), 200));
  app.openapi(readRoute, async (context) =>
    context.json(await readDomain(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.openapi(addRoute, async (context) => {
    const { domain, isNew } = await addDomain(deps, context.get('actor'), context.req.valid('json'));
    return context.json(domain, isNew ? 201 : 200);
  });
  app.openapi(checkRoute, async (context) =>
    context.json(await checkDomain(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.openapi(removeRoute, async (context) => {
    await removeDomain(deps, context.get('actor'), context.req.valid('param').id);
    return context.body(null, 204);
  });
};
