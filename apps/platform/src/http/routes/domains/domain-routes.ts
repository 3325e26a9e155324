// Own domains of an account over HTTP.
import { createRoute, z } from '@hono/zod-openapi';
import { newDomain, ownDomain, ownDomains } from '@tunnel/contract';
import type { MiddlewareHandler } from 'hono';
import {
  addDomain,
  checkDomain,
  type DomainsContext,
  listDomains,
  readDomain,
  removeDomain,
} from '../../../services/domains/own-domains.ts';
import type { PlatformApp, PlatformEnv } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, jsonBody, refused, userRefusals, withUser, writesPerDay } from '../../shared/route-parts.ts';

const tags = [EXTENSIONS];
const params = z.object({ id: z.string().meta({ description: 'The id of the domain.' }) });
const unknown = refused('No such domain, or not yours.', 'DOMAIN_UNKNOWN');

const listRoute = createRoute({
  method: 'get',
  path: '/domains',
  tags,
  summary: 'Your own domains, the records to set, and their certificates',
  security: withUser,
  responses: { 200: json(ownDomains, 'In every state.'), ...userRefusals },
});

const readRoute = createRoute({
  method: 'get',
  path: '/domains/{id}',
  tags,
  summary: 'One own domain',
  security: withUser,
  request: { params },
  responses: { 200: json(ownDomain, 'As the last look found it.'), ...userRefusals, 404: unknown },
});

const addRoute = createRoute({
  method: 'post',
  path: '/domains',
  tags,
  summary: 'Add an own domain: it is yours once DNS has your token',
  security: withUser,
  request: { body: jsonBody(newDomain) },
  responses: {
    200: json(ownDomain, 'You have it already; whether a certificate is wanted is as you say now, or as before.'),
    201: json(ownDomain, 'It is looked at after 5 s, and again and again; or at once: POST /domains/{id}/check.'),
    400: refused(
      'Not a name that can be yours: no host name, an address, one label, or one of this server.',
      'DOMAIN_INVALID',
      {
        ...{ domain: 'localhost', reason: 'it has one label: there is no domain that it could be a name of' },
      },
    ),
    401: userRefusals[401],
    403: refused('The plan allows no more; or the account is suspended.', 'DOMAIN_LIMIT', { limit: 3 }),
    409: refused('Only this machine reaches the server, so no record can point to it.', 'DOMAIN_LOCAL_SERVER', {
      domain: 'localhost',
    }),
    429: writesPerDay,
  },
});

const checkRoute = createRoute({
  method: 'post',
  path: '/domains/{id}/check',
  tags,
  summary: 'Look for the records at once',
  security: withUser,
  request: { params },
  responses: {
    200: json(ownDomain, 'As this look found it. A resolver that does not answer changes no state.'),
    ...userRefusals,
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

const removeRoute = createRoute({
  method: 'delete',
  path: '/domains/{id}',
  tags,
  summary: 'Remove an own domain: its tunnels are closed, its certificate and key are destroyed',
  security: withUser,
  request: { params },
  responses: { 204: { description: 'It is removed.' }, ...userRefusals, 404: unknown },
});

export interface DomainRouteDeps extends DomainsContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
}

export const addDomainRoutes = (app: PlatformApp, deps: DomainRouteDeps): void => {
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
