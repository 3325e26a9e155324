// API keys over HTTP.
import { createRoute, z } from '@hono/zod-openapi';
import { apiTokens, createdKey, newKey } from '@tunnel/contract';
import type { MiddlewareHandler } from 'hono';
import { createKey, listKeys, revokeKey } from '../../../services/keys/keys.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../../shared/platform-env.ts';
import { json, jsonBody, refused, userRefusals, withUser, writesPerDay } from '../../shared/route-parts.ts';

const tags = ['keys'];

const listRoute = createRoute({
  method: 'get',
  path: '/keys',
  tags,
  summary: 'Your API keys, newest first',
  security: withUser,
  responses: { 200: json(apiTokens, 'Those that can be used.'), ...userRefusals },
});

const createKeyRoute = createRoute({
  method: 'post',
  path: '/keys',
  tags,
  summary: 'Make an API key for a tunnel client',
  security: withUser,
  request: { body: jsonBody(newKey) },
  responses: {
    201: json(createdKey, 'The key, for the only time.'),
    400: refused('The label is missing, empty or too long, or the account holds too many keys.', 'API_BAD_REQUEST', {
      reason: 'label: must have 1 to 100 characters',
    }),
    ...userRefusals,
    429: writesPerDay,
  },
});

const revokeRoute = createRoute({
  method: 'delete',
  path: '/keys/{id}',
  tags,
  summary: 'Revoke an API key: sessions that use it are closed within 2 seconds',
  security: withUser,
  request: { params: z.object({ id: z.string().meta({ description: 'The id of the key.' }) }) },
  responses: {
    204: { description: 'It is revoked.' },
    ...userRefusals,
    404: refused('No such key, or not yours.', 'KEY_UNKNOWN'),
  },
});

export interface KeyRouteDeps extends RouteContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
}

export const addKeyRoutes = (app: PlatformApp, deps: KeyRouteDeps): void => {
  app.use('/keys/*', deps.requireUser);
  app.openapi(listRoute, async (context) => context.json(await listKeys(deps, context.get('actor')), 200));
  app.openapi(createKeyRoute, async (context) =>
    context.json(await createKey(deps, context.get('actor'), context.req.valid('json')), 201),
  );
  app.openapi(revokeRoute, async (context) => {
    await revokeKey(deps, context.get('actor'), context.req.valid('param').id);
    return context.body(null, 204);
  });
};
