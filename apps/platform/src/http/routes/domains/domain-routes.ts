// Routes for an account's own domains.
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
const unknown = refused('The domain does not exist or belongs to another account.', 'DOMAIN_UNKNOWN');

const listRoute = userRoute('get', '/domains', {
  summary: 'List custom domains with DNS records and certificates',
  responses: { 200: json(ownDomains, 'The domains, in any state.') },
});

const readRoute = userRoute('get', '/domains/{id}', {
  summary: 'Get a custom domain',
  request: { params },
  responses: { 200: json(ownDomain, 'The domain, as of the last check.'), 404: unknown },
});

const addRoute = userRoute('post', '/domains', {
  summary: "Add a custom domain (verified by a DNS record with the account's token)",
  request: { body: jsonBody(newDomain) },
  responses: {
    200: json(ownDomain, 'The account already has the domain. The certificate setting is updated if given.'),
    201: json(
      ownDomain,
      'The domain is added. The first DNS check runs after 5 s and repeats automatically; POST /domains/{id}/check checks immediately.',
    ),
    400: refused(
      'The name cannot be used: not a host name, an IP address, a single label, or a name of this server.',
      'DOMAIN_INVALID',
      {
        domain: 'localhost',
        reason: 'a domain needs at least two labels',
      },
    ),
    403: refused("The plan's limit is reached, or the account is suspended.", 'DOMAIN_LIMIT', { limit: 3 }),
    409: refused(
      'The server is only reachable from its own machine, so no DNS record can point to it.',
      'DOMAIN_LOCAL_SERVER',
      {
        domain: 'localhost',
      },
    ),
    429: writesPerDay,
  },
});

const checkRoute = userRoute('post', '/domains/{id}/check', {
  summary: 'Check the DNS records now',
  request: { params },
  responses: {
    200: json(ownDomain, 'The domain after the check. The state stays unchanged if the DNS lookup fails.'),
    404: unknown,
    429: refused(
      'The domain was checked less than 5 s ago, or too many checks of the account are running; see Retry-After.',
      'DOMAIN_CHECK_TOO_SOON',
      {
        seconds: 4,
      },
    ),
  },
});

const removeRoute = userRoute('delete', '/domains/{id}', {
  summary: 'Remove a custom domain; closes its tunnels and deletes the certificate and key',
  request: { params },
  responses: { 204: { description: 'The domain is removed.' }, 404: unknown },
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
