// Usage in the platform API: sums, days, and the log of tunnels.
import * as z from 'zod';
import { clientName, type ShownProtocol, shownProtocol } from './edge-rest.ts';

const count = z.int().min(0);

/** Numbers of the queries. */
export const CHART_DAYS = { default: 30, min: 1, max: 90 } as const;
export const TUNNEL_LOG_LIMIT = { default: 20, min: 1, max: 100 } as const;
export const TUNNEL_LOG_OFFSET = { default: 0, min: 0 } as const;
/** Choices of the queries. */
export const tunnelState = z.enum(['active', 'closed']);
export type TunnelState = z.infer<typeof tunnelState>;
/** The window of the summary: today and the days before it. */
export const SUMMARY_DAYS = 30;

export const usageSummary = z
  .object({
    active_tunnels: count.meta({ description: 'Open right now.', examples: [2] }),
    total_tunnels_30d: count.meta({ description: 'Registered today and in the 29 days (UTC) before.', examples: [17] }),
    total_requests_30d: count.meta({
      description: 'HTTP requests; connections of tcp, flows of udp, subscribers of p2p. By the day they happened.',
      examples: [1204],
    }),
    total_bytes_30d: count.meta({ description: 'Both ways, by the day they were carried.', examples: [48_201_733] }),
    plan: z.string().meta({ examples: ['free'] }),
    tunnel_limit: count.nullable().meta({ description: 'Tunnels at once; null: no limit.', examples: [3] }),
    reserved_limit: count
      .nullable()
      .optional()
      .meta({ description: 'Reserved names and ports together; null: no limit.', examples: [3] }),
    domain_limit: count
      .nullable()
      .optional()
      .meta({ description: 'Own domains; null: no limit.', examples: [3] }),
  })
  .meta({ id: 'UsageSummary' });
export type UsageSummary = z.infer<typeof usageSummary>;

export const usageChartPoint = z
  .object({
    date: z.iso.date().meta({ description: 'A day in UTC.', examples: ['2030-01-31'] }),
    tunnels: count.meta({ description: 'Registered on that day.', examples: [2] }),
    requests: count.meta({ description: 'As request_count of a tunnel, of all together.', examples: [310] }),
    bytes: count.meta({ description: 'Carried both ways on that day.', examples: [7_340_032] }),
  })
  .meta({ id: 'UsageChartPoint' });
export type UsageChartPoint = z.infer<typeof usageChartPoint>;

export const usageChart = z
  .array(usageChartPoint)
  .meta({ description: 'Oldest first, one point a day, zeros included.' });

export const tunnelLogEntry = z
  .object({
    id: z.string().meta({ examples: ['6c1b8f5e-21ad-4f0c-8d57-3c5a0b1d9e77'] }),
    tunnel_id: z.string().meta({ examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
    protocol: shownProtocol,
    label: z
      .string()
      .meta({ description: 'http: the subdomain; tcp and udp: the port as text; p2p: the name.', examples: ['web'] }),
    name: z
      .string()
      .optional()
      .meta({ description: 'What the client calls the tunnel. Left out: not known.', examples: ['web'] }),
    public_url: z
      .string()
      .optional()
      .meta({
        description: 'Where visitors reach it, or did. Left out: not known.',
        examples: ['http://web.localhost:8000'],
      }),
    client_name: clientName,
    registered_at: z.iso.datetime(),
    unregistered_at: z.iso.datetime().nullable().meta({ description: 'null while the tunnel is active.' }),
    region_id: z
      .string()
      .nullable()
      .meta({ description: 'The edge region it ran in.', examples: ['local'] }),
    request_count: count.meta({
      description: 'HTTP requests; connections for tcp; flows for udp; subscribers that joined for p2p.',
    }),
    bytes_proxied: count.meta({
      description: 'Bytes carried both ways, without framing and TLS. p2p: relayed ones alone.',
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
    control: z
      .string()
      .meta({ description: 'host:port for tunnel clients; empty: not known.', examples: ['127.0.0.1:4040'] }),
    control_tls: z.boolean().meta({ description: 'Clients come over TLS.' }),
    http_url: z.string().meta({
      description:
        'Where http tunnels live, each below its label; tcp and udp tunnels at the ports of its host. Empty: not known.',
      examples: ['http://localhost:8000'],
    }),
  })
  .meta({ id: 'UsageRegion' });
export type UsageRegion = z.infer<typeof usageRegion>;

export const usageRegions = z
  .array(usageRegion)
  .meta({ description: 'Regions whose edge was heard in the last 60 seconds, by their id.' });

export const unguardedTunnels = z
  .object({ tunnel_ids: z.array(z.string()) })
  .meta({ id: 'UnguardedTunnels', description: 'Those of an edge that does not answer are missing.' });
export type UnguardedTunnels = z.infer<typeof unguardedTunnels>;
