// The routes of the edge REST as the OpenAPI document tells them. What they do is in rest-app.ts.
import { createRoute, z } from '@hono/zod-openapi';
import { apiError, edgeRegions, edgeStatus, edgeTunnel, edgeTunnels } from '@tunnel/contract';

const json = <T extends z.ZodType>(schema: T, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});

const refused = (description: string) => json(apiError, description);

const keyRefusals = {
  401: refused('No key, or one that is not accepted.'),
  429: refused('Too many refused keys from this address; see Retry-After.'),
};

const withKey = [{ bearer: [] }];
const tunnelIdParam = z.object({ id: z.string().meta({ description: 'The tunnel_id.' }) });

export const statusRoute = createRoute({
  method: 'get',
  path: '/api/status',
  summary: 'Is the edge well, and how busy is it?',
  security: [],
  responses: { 200: json(edgeStatus, 'The state of this edge.') },
});

export const listTunnelsRoute = createRoute({
  method: 'get',
  path: '/api/tunnels',
  summary: 'The living tunnels: all of them for the admin token, the own ones for an API key',
  security: withKey,
  responses: { 200: json(edgeTunnels, 'In the order of their registration.'), ...keyRefusals },
});

export const showTunnelRoute = createRoute({
  method: 'get',
  path: '/api/tunnels/{id}',
  summary: 'One tunnel',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    200: json(edgeTunnel, 'The tunnel.'),
    ...keyRefusals,
    404: refused('No such tunnel, or not yours.'),
  },
});

export const closeTunnelRoute = createRoute({
  method: 'delete',
  path: '/api/tunnels/{id}',
  summary: 'Close a tunnel: its client is told and does not register it again; open connections finish',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    204: { description: 'It is closed.' },
    ...keyRefusals,
    404: refused('No such tunnel, or not yours.'),
  },
});

export const listRegionsRoute = createRoute({
  method: 'get',
  path: '/api/regions',
  summary: 'The regions this edge knows',
  security: withKey,
  responses: { 200: json(edgeRegions, 'The regions.'), ...keyRefusals },
});
