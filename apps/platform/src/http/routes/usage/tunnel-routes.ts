// One tunnel over HTTP, as its edge knows it: captured requests, health, flows, peers and rules; and its end.
import { z } from '@hono/zod-openapi';
import {
  CAPTURE_CURSOR_MAX,
  CAPTURE_LIST_LIMIT,
  CAPTURES_KEPT_MAX,
  capturedRequest,
  captureList,
  edgeFlows,
  edgePeers,
  healthEvents,
  replayEdit,
  tunnelPolicy,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { choiceParameter, cursorParameter, emptyBodyIsNone, integerParameter } from '@tunnel/http-shell';
import {
  closeTunnel,
  dismissPeer,
  listFlows,
  listHealthEvents,
  listPeers,
  listRequests,
  replayRequest,
  showPolicy,
  type TunnelEdges,
} from '../../../services/usage/edge-state.ts';
import type { PlatformApp, UserRouteContext } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, refused, userRoutes } from '../../shared/route-parts.ts';

export const unknownTunnel = refused('No such tunnel, or not yours.', 'TUNNEL_UNKNOWN');

export const tunnelIdParam = z.object({
  id: z
    .string()
    .meta({ description: 'The id of the log entry, or the tunnel_id.', examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
});

/** What a route that asks the edge of one tunnel may answer; a route may say it otherwise. */
const edgeRefusals = {
  404: unknownTunnel,
  502: refused('The region of the tunnel does not answer.', 'EDGE_AWAY', { region: 'local' }),
};

const extensionRoute = userRoutes('usage', EXTENSIONS);

const listRequestsRoute = userRoutes('usage')('get', '/usage/tunnels/{id}/requests', {
  summary: `The last ${CAPTURES_KEPT_MAX} requests of an http tunnel, page by page, from the edge that it ran on`,
  request: {
    params: tunnelIdParam,
    query: z.object({
      limit: integerParameter('limit', CAPTURE_LIST_LIMIT, 'How many at most.'),
      cursor: cursorParameter(
        'cursor',
        CAPTURE_CURSOR_MAX,
        'The next_cursor of an earlier answer: the next older requests.',
      ),
      answered: choiceParameter(
        'answered',
        ['true', 'false'],
        'true: only those that a rule of the tunnel answered. false: only those that its service got.',
      ),
    }),
  },
  responses: {
    ...edgeRefusals,
    200: json(
      captureList,
      'Newest first; the shape follows the edge and may grow. Nothing when they are no longer kept.',
    ),
    400: refused(
      'The limit is not in its range, the cursor is none, or the tunnel is not an http tunnel.',
      'TUNNEL_NOT_HTTP',
      {
        protocol: 'tcp',
      },
    ),
  },
});

const healthEventsRoute = extensionRoute('get', '/usage/tunnels/{id}/health-events', {
  summary: 'When a living tunnel became healthy or unhealthy, and why: the last 50 times, oldest first',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    200: json(healthEvents, 'Empty until the first transition, and after the end of the tunnel.'),
  },
});

const replayRoute = extensionRoute('post', '/usage/tunnels/{id}/requests/{request_id}/replay', {
  summary: 'Send a captured request to the local service once more, as it was or edited',
  request: {
    params: tunnelIdParam.extend({
      request_id: z.string().meta({ description: 'The id of the captured request.', examples: ['req_k3b9f200001c'] }),
    }),
    body: { content: { 'application/json': { schema: replayEdit } }, required: false },
  },
  responses: {
    200: json(capturedRequest, 'The new request, with replay_of; whatever the status of the service’s answer.'),
    400: refused('The edit breaks a rule, or the tunnel is not an http tunnel.', 'API_BAD_REQUEST', {
      reason: 'path: must begin with /',
    }),
    404: refused('No such tunnel or request, or not yours.', 'CAPTURE_UNKNOWN'),
    409: refused('It was not kept whole, or its tunnel has ended.', 'CAPTURE_NOT_REPLAYABLE', {
      reason: 'its tunnel has ended',
    }),
    429: refused('Too many replays are under way; see Retry-After.', 'CAPTURE_REPLAYS_BUSY', { limit: 16, seconds: 1 }),
    502: refused('The region does not answer, or the local service gave no answer.', 'EDGE_AWAY', { region: 'local' }),
    504: refused('The local service did not answer in time.', 'LOCAL_TIMEOUT', { seconds: 60 }),
  },
});

const listFlowsRoute = extensionRoute('get', '/usage/tunnels/{id}/flows', {
  summary: 'The flows of a udp tunnel, what was dropped, and the path of its datagrams, from the edge that it runs on',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    200: json(edgeFlows, 'As they are now; nothing after the end of the tunnel.'),
    400: refused('The tunnel is not a udp tunnel.', 'TUNNEL_NOT_UDP', { protocol: 'tcp' }),
  },
});

const notP2p = refused('The tunnel is not a p2p tunnel.', 'TUNNEL_NOT_P2P', { protocol: 'tcp' });

const listPeersRoute = extensionRoute('get', '/usage/tunnels/{id}/peers', {
  summary: 'The peers of a p2p tunnel: who is joined, over which path, and why',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    200: json(edgePeers, 'As they are now; nobody after the end of the tunnel.'),
    400: notP2p,
  },
});

const dismissPeerRoute = extensionRoute('delete', '/usage/tunnels/{id}/peers/{peer_id}', {
  summary: 'Dismiss a peer: its relay and its direct path are closed, and it may not join again for 60 seconds',
  request: {
    params: tunnelIdParam.extend({ peer_id: z.string().meta({ description: 'As the list of peers has it.' }) }),
  },
  responses: {
    ...edgeRefusals,
    204: { description: 'It is dismissed.' },
    400: notP2p,
    404: refused('No such tunnel or peer, or not yours.', 'P2P_PEER_UNKNOWN'),
  },
});

const showPolicyRoute = extensionRoute('get', '/usage/tunnels/{id}/policy', {
  summary: 'The rules of a living tunnel in words, and how often each one acted, from the edge that it runs on',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    200: json(tunnelPolicy, 'As it is in force now; no secret is in it.'),
    404: refused('No such tunnel, not yours, ended, or it has no policy.', 'POLICY_ABSENT'),
  },
});

const closeRoute = extensionRoute('delete', '/tunnels/{id}', {
  summary: 'Close a live tunnel: its client is told and does not open it again; open connections finish',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    204: { description: 'The tunnel is closed.' },
  },
});

interface TunnelRouteDeps extends UserRouteContext {
  readonly edges: TunnelEdges;
}

export const addTunnelRoutes = (app: PlatformApp, deps: TunnelRouteDeps): void => {
  addCaptureRoutes(app, deps);
  addTunnelCloseRoute(app, deps);
  addVisitorRoutes(app, deps);
};

const addCaptureRoutes = (app: PlatformApp, deps: TunnelRouteDeps): void => {
  app.openapi(listRequestsRoute, async (context) => {
    const { id } = context.req.valid('param');
    const { limit, cursor, answered } = context.req.valid('query');
    const wanted = { limit, cursor, ...(answered === undefined ? {} : { answered: answered === 'true' }) };
    return context.json(await listRequests(deps, context.get('actor'), id, wanted), 200);
  });
  app.openapi(healthEventsRoute, async (context) =>
    context.json(await listHealthEvents(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.use(replayRoute.getRoutingPath(), emptyBodyIsNone);
  app.openapi(replayRoute, async (context) => {
    const { id, request_id } = context.req.valid('param');
    const edit = context.req.valid('json');
    return context.json(await replayRequest(deps, context.get('actor'), id, request_id, edit), 200);
  });
};

const addVisitorRoutes = (app: PlatformApp, deps: TunnelRouteDeps): void => {
  app.openapi(listFlowsRoute, async (context) =>
    context.json(await listFlows(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.openapi(listPeersRoute, async (context) =>
    context.json(await listPeers(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.openapi(dismissPeerRoute, async (context) => {
    const { id, peer_id } = context.req.valid('param');
    await dismissPeer(deps, context.get('actor'), id, peer_id);
    return context.body(null, 204);
  });
  app.openapi(showPolicyRoute, async (context) =>
    context.json(await showPolicy(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
};

export const addTunnelCloseRoute = (app: PlatformApp, deps: TunnelRouteDeps): void => {
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
