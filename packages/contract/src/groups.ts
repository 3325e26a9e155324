// Schemas of load-balanced groups in the edge's REST API, as forwarded by the platform: groups, their members and their events.
import * as z from 'zod';
import { clientName, shownProtocol } from './edge-rest.ts';

const count = z.int().min(0);

/** Protocols that support load balancing. */
export const groupProtocol = shownProtocol.extract(['http', 'tcp']);
export type GroupProtocol = z.infer<typeof groupProtocol>;

const label = z.string().meta({ description: 'The subdomain (http) or the port as text (tcp).' });

const lastAlert = z
  .object({
    at: z.iso.datetime().meta({ description: 'The time at which the group lost the last healthy member.' }),
    outcome: z.enum(['delivered', 'failed', 'refused', 'dropped']).meta({
      description:
        '`delivered`: the receiver answered with a 2xx. `failed`: delivery failed. `refused`: alerts to the address are not allowed. `dropped`: too many alerts were queued.',
      examples: ['delivered'],
    }),
  })
  .meta({ id: 'LastAlert' });
export type LastAlert = z.infer<typeof lastAlert>;

export const groupMemberSummary = z
  .object({
    tunnel_id: z.string().meta({ examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
    session_id: z.string(),
    // Optional fields are omitted by older edges: the platform may be newer than its edges.
    name: z
      .string()
      .optional()
      .meta({ description: 'The name of the tunnel.', examples: ['web'] }),
    public_url: z
      .string()
      .optional()
      .meta({ description: 'The public URL of the group.', examples: ['http://shop.localhost:8000'] }),
    client_addr: z.string().meta({ description: "The client's address as host:port." }),
    client_name: clientName,
    request_count: count.meta({ description: 'The number of HTTP requests or tcp connections.' }),
    bytes_proxied: count,
    healthy: z
      .boolean()
      .meta({ description: 'True if the member is healthy. New connections go to healthy members only.' }),
    consecutive_failures: count.meta({
      description: 'Consecutive failed health checks, as last reported by the client; 0 while healthy.',
    }),
    total_health_failures: count.meta({ description: 'Failure reports since the member joined.' }),
    last_failure_reason: z
      .string()
      .optional()
      .meta({
        description: 'The last failure report. Kept after the member recovers; omitted before the first failure.',
        examples: ['status 500'],
      }),
    connected_since: z.iso.datetime(),
    health_check_kind: z.enum(['tcp', 'http']).optional().meta({
      description: 'The type of health check. Omitted without a health check: the member always counts as healthy.',
    }),
    has_alert_webhook: z
      .boolean()
      .meta({ description: 'True if the member has an alert URL. The URL is never shown.' }),
    last_alert: lastAlert.optional().meta({
      description:
        "The result of the last alert to the member's alert URL. Omitted before the first alert and during delivery.",
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
      description: 'Public connections dispatched since the group was created, including those to former members.',
    }),
    total_health_failures: count.meta({ description: 'Failure reports, including those of former members.' }),
    members: z.array(groupMemberSummary).meta({ description: 'The members, in order of joining.' }),
  })
  .meta({
    id: 'GroupSummary',
    description: "With an API key, only members of the key's account are listed and counted.",
  });
export type GroupSummary = z.infer<typeof groupSummary>;

export const groupSummaries = z.array(groupSummary);

export const healthEvent = z
  .object({
    at: z.iso.datetime(),
    healthy: z.boolean().meta({ description: 'The new state.' }),
    reason: z.string(),
  })
  .meta({ id: 'HealthEvent' });
export type HealthEvent = z.infer<typeof healthEvent>;

export const healthEvents = z.array(healthEvent).max(50);

/** Data of the SSE event `group_event`: a member became healthy or unhealthy. */
export const groupEvent = z
  .object({
    protocol: groupProtocol,
    label,
    group_name: z.string(),
    region_id: z.string(),
    tunnel_id: z.string(),
    healthy: z.boolean(),
    reason: z.string(),
    healthy_count: count.meta({
      description:
        "The number of healthy members after the change. With an API key, only members of the key's account are counted.",
    }),
    member_count: count.meta({
      description: "The number of members. With an API key, only members of the key's account are counted.",
    }),
    at: z.iso.datetime(),
  })
  .meta({ id: 'GroupEvent' });
export type GroupEvent = z.infer<typeof groupEvent>;

/** Data of the SSE event `lagged`: the number of events dropped at this point. GET /api/groups returns the current state. */
export const lagged = z.object({ missed: z.int().min(1) }).meta({ id: 'Lagged' });

export const platformPools = z
  .object({
    groups: groupSummaries,
    warnings: z.array(z.string()).meta({
      description: 'Names of the regions that did not respond. Groups in these regions are missing from the list.',
      examples: [[]],
    }),
  })
  .meta({ id: 'LoadBalancingGroups' });
export type PlatformPools = z.infer<typeof platformPools>;
