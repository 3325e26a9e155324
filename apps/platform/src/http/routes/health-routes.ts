// Health probes over HTTP: of the process, and of its way to the database.
import { createRoute } from '@hono/zod-openapi';
import { okBody } from '@tunnel/contract';
import { DatabaseProbe } from '../../services/probe-database.ts';
import { databaseAway } from '../error-mapper.ts';
import type { PlatformApp, RouteContext } from '../platform-env.ts';
import { json, refused } from '../route-parts.ts';

const tags = ['health'];

const healthRoute = createRoute({
  method: 'get',
  path: '/health',
  tags,
  summary: 'Is the process up?',
  security: [],
  responses: { 200: json(okBody, 'It is, whatever the database does.') },
});

const databaseRoute = createRoute({
  method: 'get',
  path: '/health/db',
  tags,
  summary: 'Does the database answer within a second?',
  security: [],
  responses: { 200: json(okBody, 'It does.'), 503: refused('It does not.', 'DATABASE_AWAY') },
});

export const addHealthRoutes = (app: PlatformApp, { db, clock }: RouteContext): void => {
  const probe = new DatabaseProbe(db, clock);
  app.openapi(healthRoute, (context) => context.json({ ok: true }, 200));
  app.openapi(databaseRoute, async (context) => {
    if (!(await probe.isWell())) throw databaseAway();
    return context.json({ ok: true }, 200);
  });
};
