// Load-balanced groups as the edge's REST shows them, and the platform passes them on: the pools, their members, what happens in them.
import * as z from 'zod';
import { clientName, shownProtocol } from './edge-rest.ts';

const count = z.int().min(0);

/** Load balancing exists for these alone. */
export const groupProtocol = shownProtocol.extract(['http', 'tcp']);
export type GroupProtocol = z.infer<typeof groupProtocol>;

const label = z.string().meta({ description: 'http: the subdomain; tcp: the port as text.' });

const lastAlert = z
  .object({
    at: z.iso.datetime().meta({ description: 'When the last healthy member of the group was lost.' }),
    outcome: z.enum(['delivered', 'failed', 'refused', 'dropped']).meta({
      description:
        '`delivered`: the receiver took it (2xx); `failed`: it did not; `refused`: an alert may not go to that address; `dropped`: there were too many.',
      examples: ['delivered'],
    }),
  })
  .meta({ id: 'LastAlert' });
export type LastAlert = z.infer<typeof lastAlert>;

export const groupMemberSummary = z
  .object({
    tunnel_id: z.string().meta({ examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
    session_id: z.string(),
    // Those that are left out by an edge of before: the platform may be newer than its edges.
    name: z
      .string()
      .optional()
      .meta({ description: 'Of the tunnel.', examples: ['web'] }),
    public_url: z
      .string()
      .optional()
      .meta({ description: 'Of the group.', examples: ['http://shop.localhost:8000'] }),
    client_addr: z.string().meta({ description: 'host:port the client connected from.' }),
    client_name: clientName,
    request_count: count.meta({ description: 'HTTP requests; connections for tcp.' }),
    bytes_proxied: count,
    healthy: z.boolean().meta({ description: 'New connections are given to healthy members only.' }),
    consecutive_failures: count.meta({ description: 'As the client reported them last; 0 while it is healthy.' }),
    total_health_failures: count.meta({ description: 'Reports of failure since it joined.' }),
    last_failure_reason: z
      .string()
      .optional()
      .meta({
        description: 'What the last report of failure said, also once it is healthy again. Left out: there was none.',
        examples: ['status 500'],
      }),
    connected_since: z.iso.datetime(),
    health_check_kind: z
      .enum(['tcp', 'http'])
      .optional()
      .meta({ description: 'Left out: it has no probe, and is healthy for ever.' }),
    has_alert_webhook: z.boolean().meta({ description: 'The URL itself is told to nobody.' }),
    last_alert: lastAlert.optional().meta({
      description: 'What became of the last alert to its own URL. Left out: there was none, or it is under way.',
    }),
  })
  .meta({ id: 'GroupMemberSummary' });
export type GroupMemberSummary = z.infer<typeof groupMemberSummary>;

export const groupSummary = z
  .object({
    protocol: groupProtocol,
    label,
    name: z.string(),
    key_hash_short: z.string().meta({ description: 'The first 8 hex digits of the SHA-256 of the group key.' }),
    region_id: z.string(),
    member_count: count,
    healthy_count: count,
    unhealthy_count: count,
    total_dispatches: count.meta({
      description: 'Public connections given to members, of those that have left too, in this life of the group.',
    }),
    total_health_failures: count.meta({ description: 'Reports of failure, of members that have left too.' }),
    members: z.array(groupMemberSummary).meta({ description: 'In the order in which they joined.' }),
  })
  .meta({
    id: 'GroupSummary',
    description: 'An API key sees the members of its own account: counts and totals are of them alone.',
  });
export type GroupSummary = z.infer<typeof groupSummary>;

export const groupSummaries = z.array(groupSummary);

export const healthEvent = z
  .object({
    at: z.iso.datetime(),
    healthy: z.boolean().meta({ description: 'What it became.' }),
    reason: z.string(),
  })
  .meta({ id: 'HealthEvent' });
export type HealthEvent = z.infer<typeof healthEvent>;

export const healthEvents = z.array(healthEvent).max(50);

/** The data of an SSE `group_event`: a member became healthy, or ceased to be. */
export const groupEvent = z
  .object({
    protocol: groupProtocol,
    label,
    group_name: z.string(),
    region_id: z.string(),
    tunnel_id: z.string(),
    healthy: z.boolean(),
    reason: z.string(),
    healthy_count: count.meta({ description: 'After the change; for an API key, of the members of its account.' }),
    member_count: count.meta({ description: 'As healthy_count.' }),
    at: z.iso.datetime(),
  })
  .meta({ id: 'GroupEvent' });
export type GroupEvent = z.infer<typeof groupEvent>;

/** The data of an SSE `lagged`: so many events were dropped at this point; GET /api/groups tells how things stand. */
export const lagged = z.object({ missed: z.int().min(1) }).meta({ id: 'Lagged' });

export const platformPools = z
  .object({
    groups: groupSummaries,
    warnings: z.array(z.string()).meta({
      description: 'Regions that did not answer, by name; their groups are missing.',
      examples: [[]],
    }),
  })
  .meta({ id: 'LoadBalancingGroups' });
export type PlatformPools = z.infer<typeof platformPools>;
