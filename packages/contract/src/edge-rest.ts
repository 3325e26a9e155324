// The edge's REST: what `GET /api/...` on the api port answers. The OpenAPI document is made from these schemas.
import * as z from 'zod';

/** How a tunnel's protocol is shown: a local service that speaks TLS is still an http tunnel to everybody outside. */
export const shownProtocol = z.enum(['http', 'tcp', 'udp', 'p2p']);
export type ShownProtocol = z.infer<typeof shownProtocol>;

export const showProtocol = (protocol: ShownProtocol | 'https'): ShownProtocol =>
  protocol === 'https' ? 'http' : protocol;

const count = z.int().min(0);

export const edgeStatus = z
  .object({
    ok: z.boolean(),
    version: z.string(),
    region_id: z.string(),
    sessions: count,
    tunnels: count,
    uptime_secs: z.number().min(0),
    draining: z
      .boolean()
      .meta({ description: 'The edge takes no new connections and ends when the last one has finished.' }),
  })
  .meta({ id: 'EdgeStatus' });
export type EdgeStatus = z.infer<typeof edgeStatus>;

export const edgeTunnel = z
  .object({
    tunnel_id: z.string().meta({ examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
    session_id: z.string(),
    name: z.string(),
    protocol: shownProtocol,
    label: z.string().meta({ description: 'http: the subdomain; tcp and udp: the port as text; p2p: the name.' }),
    public_url: z.string().meta({ examples: ['tcp://localhost:20000'] }),
    assigned_port: z.int().min(1).max(65535).nullable(),
    group: z.string().nullable(),
    healthy: z.boolean(),
    client_addr: z.string().meta({ description: 'host:port the client connected from.' }),
    region_id: z.string(),
    request_count: count.meta({ description: 'HTTP requests; connections for tcp; datagram sessions for udp.' }),
    bytes_proxied: count.meta({
      description: 'Bytes carried both ways, without framing and TLS; counted while they flow.',
    }),
    connected_since: z.iso.datetime(),
  })
  .meta({ id: 'Tunnel' });
export type EdgeTunnel = z.infer<typeof edgeTunnel>;

export const edgeTunnels = z.array(edgeTunnel);

export const edgeRegion = z
  .object({
    id: z.string(),
    name: z.string(),
    location: z.string(),
    current: z.boolean().meta({ description: 'The region that gave this answer.' }),
  })
  .meta({ id: 'Region' });
export type EdgeRegion = z.infer<typeof edgeRegion>;

export const edgeRegions = z.array(edgeRegion);
