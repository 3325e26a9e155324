// Schemas of usage in the platform API: totals, daily values, and the log of tunnels.
import * as z from 'zod';
import { clientName, type ShownProtocol, shownProtocol } from './edge-rest.ts';

const count = z.int().min(0);

/** Defaults and limits of the numeric query parameters. */
export const CHART_DAYS = { default: 30, min: 1, max: 90 } as const;
export const TUNNEL_LOG_LIMIT = { default: 20, min: 1, max: 100 } as const;
export const TUNNEL_LOG_OFFSET = { default: 0, min: 0 } as const;
/** Tunnel states for filtering the log of tunnels. */
export const tunnelState = z.enum(['active', 'closed']);
export type TunnelState = z.infer<typeof tunnelState>;
/** Number of days in the usage summary, including today. */
export const SUMMARY_DAYS = 30;

export const usageSummary = z
  .object({
    active_tunnels: count.meta({ description: 'The number of open tunnels.', examples: [2] }),
    total_tunnels_30d: count.meta({
      description: 'The number of tunnels opened in the last 30 days (UTC), including today.',
      examples: [17],
    }),
    total_requests_30d: count.meta({
      description: 'HTTP requests, tcp connections, udp flows and p2p subscribers in the last 30 days.',
      examples: [1204],
    }),
    total_bytes_30d: count.meta({
      description: 'Bytes transferred in both directions in the last 30 days.',
      examples: [48_201_733],
    }),
    plan: z.string().meta({ examples: ['free'] }),
    tunnel_limit: count
      .nullable()
      .meta({ description: 'The maximum number of open tunnels, or null if unlimited.', examples: [3] }),
    reserved_limit: count
      .nullable()
      .optional()
      .meta({ description: 'The maximum number of reserved names and ports, or null if unlimited.', examples: [3] }),
    domain_limit: count
      .nullable()
      .optional()
      .meta({ description: 'The maximum number of custom domains, or null if unlimited.', examples: [3] }),
  })
  .meta({ id: 'UsageSummary' });
export type UsageSummary = z.infer<typeof usageSummary>;

export const usageChartPoint = z
  .object({
    date: z.iso.date().meta({ description: 'The day (UTC).', examples: ['2030-01-31'] }),
    tunnels: count.meta({ description: 'The number of tunnels opened on the day.', examples: [2] }),
    requests: count.meta({ description: "The sum of request_count over the account's tunnels.", examples: [310] }),
    bytes: count.meta({ description: 'Bytes transferred in both directions on the day.', examples: [7_340_032] }),
  })
  .meta({ id: 'UsageChartPoint' });
export type UsageChartPoint = z.infer<typeof usageChartPoint>;

export const usageChart = z
  .array(usageChartPoint)
  .meta({ description: 'One point per day, oldest first, including days without usage.' });

export const tunnelLogEntry = z
  .object({
    id: z.string().meta({ examples: ['6c1b8f5e-21ad-4f0c-8d57-3c5a0b1d9e77'] }),
    tunnel_id: z.string().meta({ examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
    protocol: shownProtocol,
    label: z
      .string()
      .meta({ description: 'The subdomain (http), the port as text (tcp, udp) or the p2p name.', examples: ['web'] }),
    name: z
      .string()
      .optional()
      .meta({ description: 'The name of the tunnel. Omitted if unknown.', examples: ['web'] }),
    public_url: z
      .string()
      .optional()
      .meta({
        description: 'The public URL of the tunnel. Omitted if unknown.',
        examples: ['http://web.localhost:8000'],
      }),
    client_name: clientName,
    registered_at: z.iso.datetime(),
    unregistered_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'The time at which the tunnel closed. Null while the tunnel is active.' }),
    region_id: z
      .string()
      .nullable()
      .meta({ description: 'The region of the edge that ran the tunnel.', examples: ['local'] }),
    request_count: count.meta({
      description: 'The number of HTTP requests, tcp connections, udp flows or p2p subscribers.',
    }),
    bytes_proxied: count.meta({
      description:
        'Bytes transferred in both directions, without framing and TLS. For p2p tunnels: relayed bytes only.',
    }),
  })
  .meta({ id: 'TunnelLogEntry' });
export type TunnelLogEntry = z.infer<typeof tunnelLogEntry>;

export const tunnelLog = z.array(tunnelLogEntry);

export interface TunnelLogQuery {
  readonly limit?: number;
  readonly offset?: number;
  readonly protocol?: ShownProtocol;
  readonly state?: TunnelState;
}

export const usageRegion = z
  .object({
    region_id: z.string().meta({ examples: ['local'] }),
    name: z.string().meta({ examples: ['Local'] }),
    location: z.string().meta({ examples: [''] }),
    control: z.string().meta({
      description: 'The address for tunnel clients as host:port. Empty if unknown.',
      examples: ['127.0.0.1:4040'],
    }),
    control_tls: z.boolean().meta({ description: 'True if clients connect with TLS.' }),
    http_url: z.string().meta({
      description:
        'The base URL of http tunnels: the label of a tunnel is the subdomain. tcp and udp tunnels use ports of the same host. Empty if unknown.',
      examples: ['http://localhost:8000'],
    }),
  })
  .meta({ id: 'UsageRegion' });
export type UsageRegion = z.infer<typeof usageRegion>;

export const usageRegions = z
  .array(usageRegion)
  .meta({ description: 'Regions with an edge heard from in the last 60 seconds, ordered by id.' });

export const unguardedTunnels = z.object({ tunnel_ids: z.array(z.string()) }).meta({
  id: 'UnguardedTunnels',
  description: 'Tunnels without a policy. Tunnels on an edge that does not respond are missing from the list.',
});
export type UnguardedTunnels = z.infer<typeof unguardedTunnels>;
