// Routes for API keys.
import { z } from '@hono/zod-openapi';
import { apiTokens, createdKey, newKey } from '@tunnel/contract';
import { createKey, listKeys, revokeKey } from '../../../services/keys/keys.ts';
import type { PlatformApp, UserRouteContext } from '../../shared/platform-env.ts';
import { json, jsonBody, refused, userRoutes, writesPerDay } from '../../shared/route-parts.ts';

const userRoute = userRoutes('keys');

const listRoute = userRoute('get', '/keys', {
  summary: 'List API keys, newest first',
  responses: { 200: json(apiTokens, 'The active keys.') },
});

const createKeyRoute = userRoute('post', '/keys', {
  summary: 'Create an API key for a tunnel client',
  request: { body: jsonBody(newKey) },
  responses: {
    201: json(createdKey, 'The key. Shown only once.'),
    400: refused('The label is missing, empty or too long, or the account has too many keys.', 'API_BAD_REQUEST', {
      reason: 'label: must have 1 to 100 characters',
    }),
    429: writesPerDay,
  },
});

const revokeRoute = userRoute('delete', '/keys/{id}', {
  summary: 'Revoke an API key; closes client sessions with the key within 2 seconds',
  request: { params: z.object({ id: z.string().meta({ description: 'The id of the key.' }) }) },
  responses: {
    204: { description: 'The key is revoked.' },
    404: refused('The key does not exist or belongs to another account.', 'KEY_UNKNOWN'),
  },
});

export const addKeyRoutes = (app: PlatformApp, deps: UserRouteContext): void => {
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
