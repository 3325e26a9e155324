// Closing a live tunnel of the caller's account over HTTP, on whichever computer its client runs.
import { createRoute } from '@hono/zod-openapi';
import { Fault } from '@tunnel/errors';
import type { MiddlewareHandler } from 'hono';
import { closeTunnel, type TunnelEdges } from '../../../services/usage/edge-state.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../../shared/platform-env.ts';
import {
  EXTENSIONS,
  regionAway,
  tunnelIdParam,
  unknownTunnel,
  userRefusals,
  withUser,
} from '../../shared/route-parts.ts';

const closeRoute = createRoute({
  method: 'delete',
  path: '/tunnels/{id}',
  tags: ['usage', EXTENSIONS],
  summary: 'Close a live tunnel: its client is told and does not open it again; open connections finish',
  security: withUser,
  request: { params: tunnelIdParam },
  responses: {
    204: { description: 'The tunnel is closed.' },
    ...userRefusals,
    404: unknownTunnel,
    502: regionAway,
  },
});

export interface TunnelCloseDeps extends RouteContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
  readonly edges: TunnelEdges;
}

export const addTunnelCloseRoute = (app: PlatformApp, deps: TunnelCloseDeps): void => {
  app.use(closeRoute.getRoutingPath(), deps.requireUser);
  app.openapi(closeRoute, async (context) => {
    try {
      await closeTunnel(deps, context.get('actor'), context.req.valid('param').id);
    } catch (error) {
      // A tunnel that has ended is not live any more, so callers of this route cannot find it.
      if (error instanceof Fault && error.code === 'TUNNEL_CLOSED') throw new Fault('TUNNEL_UNKNOWN');
      throw error;
    }
    return context.body(null, 204);
  });
};
