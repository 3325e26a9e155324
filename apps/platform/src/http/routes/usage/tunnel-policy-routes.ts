// Who may visit a tunnel, over HTTP: its rules in words, and how often each one acted, as its edge knows them.
import { createRoute } from '@hono/zod-openapi';
import { tunnelPolicy } from '@tunnel/contract';
import { showPolicy, type TunnelEdgeContext } from '../../../services/usage/edge-state.ts';
import type { PlatformApp } from '../../shared/platform-env.ts';
import {
  EXTENSIONS,
  json,
  refused,
  regionAway,
  tunnelIdParam,
  userRefusals,
  withUser,
} from '../../shared/route-parts.ts';

const showPolicyRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}/policy',
  tags: ['usage', EXTENSIONS],
  summary: 'The rules of a living tunnel in words, and how often each one acted, from the edge that it runs on',
  security: withUser,
  request: { params: tunnelIdParam },
  responses: {
    200: json(tunnelPolicy, 'As it is in force now; no secret is in it.'),
    ...userRefusals,
    404: refused('No such tunnel, not yours, ended, or it has no policy.', 'POLICY_ABSENT'),
    502: regionAway,
  },
});

export const addTunnelPolicyRoutes = (app: PlatformApp, deps: TunnelEdgeContext): void => {
  app.openapi(showPolicyRoute, async (context) =>
    context.json(await showPolicy(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
};
