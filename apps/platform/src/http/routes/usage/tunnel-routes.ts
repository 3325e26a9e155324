// Routes for a single tunnel, answered by its edge: captured requests, health, flows, peers and policy; and closing the tunnel.
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

export const unknownTunnel = refused('The tunnel does not exist or belongs to another account.', 'TUNNEL_UNKNOWN');

export const tunnelIdParam = z.object({
  id: z
    .string()
    .meta({ description: 'The id of the log entry or the tunnel_id.', examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
});

/** Error responses of routes that ask a tunnel's edge. A route can override the responses. */
const edgeRefusals = {
  404: unknownTunnel,
  502: refused('The region of the tunnel does not respond.', 'EDGE_AWAY', { region: 'local' }),
};

const extensionRoute = userRoutes('usage', EXTENSIONS);

const listRequestsRoute = userRoutes('usage')('get', '/usage/tunnels/{id}/requests', {
  summary: `List the last ${CAPTURES_KEPT_MAX} captured requests of an http tunnel, page by page`,
  request: {
    params: tunnelIdParam,
    query: z.object({
      limit: integerParameter('limit', CAPTURE_LIST_LIMIT, 'The maximum number of requests.'),
      cursor: cursorParameter(
        'cursor',
        CAPTURE_CURSOR_MAX,
        'The next_cursor of an earlier response, for the next page of older requests.',
      ),
      answered: choiceParameter(
        'answered',
        ['true', 'false'],
        'True: only requests answered by a rule. False: only requests passed to the local service.',
      ),
    }),
  },
  responses: {
    ...edgeRefusals,
    200: json(
      captureList,
      'The requests, newest first; more fields may be added. An empty list if the requests are no longer stored.',
    ),
    400: refused('The limit or the cursor is not valid, or the tunnel is not an http tunnel.', 'TUNNEL_NOT_HTTP', {
      protocol: 'tcp',
    }),
  },
});

const healthEventsRoute = extensionRoute('get', '/usage/tunnels/{id}/health-events', {
  summary: 'List the last 50 health changes of an open tunnel, oldest first',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    200: json(healthEvents, 'The health changes. Empty before the first change and after the tunnel closes.'),
  },
});

const replayRoute = extensionRoute('post', '/usage/tunnels/{id}/requests/{request_id}/replay', {
  summary: 'Replay a captured request to the local service, unchanged or edited',
  request: {
    params: tunnelIdParam.extend({
      request_id: z.string().meta({ description: 'The id of the captured request.', examples: ['req_k3b9f200001c'] }),
    }),
    body: { content: { 'application/json': { schema: replayEdit } }, required: false },
  },
  responses: {
    200: json(capturedRequest, 'The new request with replay_of, regardless of the response status.'),
    400: refused('The edit is not valid, or the tunnel is not an http tunnel.', 'API_BAD_REQUEST', {
      reason: 'path: must begin with /',
    }),
    404: refused('The tunnel or request does not exist or belongs to another account.', 'CAPTURE_UNKNOWN'),
    409: refused('The request was not stored completely, or the tunnel has ended.', 'CAPTURE_NOT_REPLAYABLE', {
      reason: 'its tunnel has ended',
    }),
    429: refused('Too many replays are in progress; see Retry-After.', 'CAPTURE_REPLAYS_BUSY', {
      limit: 16,
      seconds: 1,
    }),
    502: refused('The region or the local service does not respond.', 'EDGE_AWAY', { region: 'local' }),
    504: refused('The local service did not respond in time.', 'LOCAL_TIMEOUT', { seconds: 60 }),
  },
});

const listFlowsRoute = extensionRoute('get', '/usage/tunnels/{id}/flows', {
  summary: 'Get the flows, dropped datagrams and datagram path of a udp tunnel',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    200: json(edgeFlows, 'The current flows. Empty after the tunnel closes.'),
    400: refused('The tunnel is not a udp tunnel.', 'TUNNEL_NOT_UDP', { protocol: 'tcp' }),
  },
});

const notP2p = refused('The tunnel is not a p2p tunnel.', 'TUNNEL_NOT_P2P', { protocol: 'tcp' });

const listPeersRoute = extensionRoute('get', '/usage/tunnels/{id}/peers', {
  summary: 'List the peers of a p2p tunnel with their paths',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    200: json(edgePeers, 'The connected peers. Empty after the tunnel closes.'),
    400: notP2p,
  },
});

const dismissPeerRoute = extensionRoute('delete', '/usage/tunnels/{id}/peers/{peer_id}', {
  summary: 'Disconnect a peer; closes the relay and direct path and blocks the peer for 60 seconds',
  request: {
    params: tunnelIdParam.extend({ peer_id: z.string().meta({ description: 'The peer_id from the list of peers.' }) }),
  },
  responses: {
    ...edgeRefusals,
    204: { description: 'The peer is disconnected.' },
    400: notP2p,
    404: refused('The tunnel or peer does not exist or belongs to another account.', 'P2P_PEER_UNKNOWN'),
  },
});

const showPolicyRoute = extensionRoute('get', '/usage/tunnels/{id}/policy', {
  summary: 'Get the policy rules of an open tunnel with readable summaries and counts',
  request: { params: tunnelIdParam },
  responses: {
    ...edgeRefusals,
    200: json(tunnelPolicy, 'The current policy, without secrets.'),
    404: refused(
      'The tunnel does not exist, belongs to another account, has ended, or has no policy.',
      'POLICY_ABSENT',
    ),
  },
});

const closeRoute = extensionRoute('delete', '/tunnels/{id}', {
  summary: 'Close an open tunnel; the client does not reopen it, and open connections can finish',
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
      // An ended tunnel is no longer live, so callers of this route get the error of an unknown tunnel.
      if (error instanceof Fault && error.code === 'TUNNEL_CLOSED') throw new Fault('TUNNEL_UNKNOWN');
      throw error;
    }
    return context.body(null, 204);
  });
};
