// The caller's own account and sessions over HTTP.
import { endSession, listSessions } from '../../services/auth/sessions.ts';
import { showMe, updateMe } from '../../services/auth/users.ts';
import type { RefreshCookie } from '../auth/refresh-cookie.ts';
import type { PlatformApp } from '../platform-env.ts';
import { endSessionRoute, meRoute, sessionsRoute, updateMeRoute } from './auth-route-list.ts';
import type { AuthRouteNeeds } from './auth-routes.ts';

export const addMeRoutes = (app: PlatformApp, needs: AuthRouteNeeds, cookie: RefreshCookie): void => {
  app.use('/auth/me', needs.requireUser);
  app.use('/auth/sessions/*', needs.requireUser);
  app.openapi(meRoute, async (context) => context.json(await showMe(needs, context.get('actor')), 200));
  app.openapi(updateMeRoute, async (context) =>
    context.json(await updateMe(needs, context.get('actor'), context.req.valid('json')), 200),
  );
  app.openapi(sessionsRoute, async (context) =>
    context.json(await listSessions(needs, context.get('actor'), cookie.read(context)), 200),
  );
  app.openapi(endSessionRoute, async (context) => {
    await endSession(needs, context.get('actor'), context.req.valid('param').id);
    return context.body(null, 204);
  });
};
