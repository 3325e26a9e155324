// The rows of the specification that this folder tests, in its order, and the names of their tests.
// rows.test.ts fails when one of them has no test.
import { numbered } from '../numbered.fixture.ts';

/** Sections of numbered sentences; the others are tables. */
const RULES = new Set(['Behaviour rules', 'Alert webhook rules', 'Errors']);

export const ROWS = {
  GroupSummary: numbered([
    'protocol: string',
    'label: string',
    'name: string',
    'key_hash_short: string',
    'region_id: string',
    'member_count: integer',
    'healthy_count: integer',
    'unhealthy_count: integer',
    'total_dispatches: integer',
    'total_health_failures: integer',
    'members: array of GroupMemberSummary',
  ]),
  GroupMemberSummary: numbered([
    'tunnel_id: string',
    'session_id: string',
    'client_addr: string',
    'request_count: integer',
    'bytes_proxied: integer',
    'healthy: boolean',
    'consecutive_failures: integer',
    'total_health_failures: integer',
    'connected_since: string',
    'health_check_kind: string, may be left out',
    'has_alert_webhook: boolean',
    'the line after the table: the alert webhook URL itself is in no response',
  ]),
  'Load-balancing concepts': numbered([
    'group: a pool that shares a subdomain or a port, known by its name and the hash of its key; the key never leaves the client',
    'member: two clients with the same (group, group_key) form a 2-member pool',
    'health bit: dispatch skips members whose bit is false',
    'per group: the flag zero_healthy_alerted, the first joiner’s name and the key hash are kept',
    'health event: at, healthy, reason',
  ]),
  'Client tunnel configuration': numbered([
    'group: the first joiner sets the name, later ones are accepted whatever they pass',
    'group_key: hashed before it is sent; a mismatching join is rejected',
    'health_check.type: tcp opens a connection, http issues a GET, left out means no probe',
    'health_check.path: needed with http, requested from the local service',
    'health_check.interval_secs: the period of probes',
    'health_check.timeout_secs: the deadline of one probe',
    'health_check.max_failed: consecutive failures before TunnelUnhealthy',
    'health_check.expect_2xx: when false, any HTTP response counts as healthy',
    'health_check.alert_webhook: told when the group reaches 0 healthy members',
    'other keys: proto, local_port, subdomain, server, auth_token; the client probes local_addr',
  ]),
  'Server configuration': numbered([
    'enabled: the kill switch, false by default; members sharing (subdomain, hash) or (name, hash) form a pool when it is true',
    'alert_webhook_url: the operator’s URL receives every zero-healthy alert of the edge',
    'tcp_port_range: where the ports of tcp groups come from',
  ]),
  'Member health': numbered([
    'joining without a health_check: healthy for ever, never reports',
    'joining with a health_check: healthy=false, excluded from dispatch',
    'first probe success: healthy=true, joins dispatch',
    'max_failed consecutive failures: healthy=false, excluded, counted',
    'first success after a streak: healthy=true, counter reset, included again',
    'probe state is reported on changes only',
  ]),
  'Group lifecycle': numbered([
    'first registration: the group exists with 1 member; tcp: a port is allocated',
    'another registration with a matching key hash: member added; tcp: same assigned_port, no further Registered',
    'last member disconnects: group removed, port back in the pool, later a fresh group',
    'last healthy member becomes unhealthy: 502 for the public, alert sent',
    'TunnelUnhealthy for a group that is down already: unchanged, no alert',
    'any member becomes healthy: the next 0-of-N transition alerts again',
    'create, join and remove are atomic: concurrent first registrations give one group',
  ]),
  'Edge REST surfaces': numbered([
    'GET /api/groups: groups visible to the caller',
    'GET /api/tunnels/:id/health-events: the last transitions, oldest first, edges only',
    'GET /api/groups/:protocol/:label/events: one group_event per transition',
    'gated by the same authentication as /api/tunnels',
    'a user token sees groups with a member of its own, and counts of visible members only',
    'a group the caller cannot see yields 404; admin tokens see everything',
  ]),
  'Metrics endpoint': numbered([
    'tunnel_group_members{group,region,healthy}: gauge by health bit',
    'tunnel_group_dispatches_total{group,region}: counter',
    'tunnel_group_health_failures_total{group,region,kind}: counter of TunnelUnhealthy frames by probe type',
    'existing series keep counting members, not groups',
  ]),
  'Behaviour rules': numbered([
    'one healthy member, uniformly at random, for each new public connection',
    'members of an HTTP group declare the same protocol; the subdomain is shared',
    'TCP: the first member allocates the port, later ones receive the same',
    'a solo tunnel on a group’s subdomain is rejected as in use',
    'a grouped tunnel on a solo tunnel’s subdomain is rejected: group key does not match',
    'a join with another key hash is rejected',
    'probes run on the client: tcp connects, http sends GET <path> HTTP/1.0 and reads the status line',
    'a member that is removed is not drained: what runs finishes, new connections go elsewhere',
    'not supported: weights, sticky sessions, udp and p2p groups, rotation of a key',
  ]),
  'Control-plane frames': numbered([
    'Registered: to the first member of a TCP group only',
    'TunnelHealthy: healthy=true, consecutive failures reset',
    'TunnelUnhealthy: healthy=false',
  ]),
  'Alert webhook': numbered([
    'event: constant group_zero_healthy',
    'region_id: string',
    'protocol: string',
    'label: subdomain or port',
    'group_name: string',
    'key_hash_short: first 8 hex characters of the key hash',
    'member_count: integer',
    'at: ISO 8601 with offset',
  ]),
  'Alert webhook rules': numbered([
    'destinations: the operator’s URL and every unique URL of the members; identical ones get one POST',
    'debounce: each downward edge fires once per destination',
    'best effort: 5 s, no retry, no queue, frame handling is not blocked',
    'signature: none unless alert_secret is set, then Standard Webhooks',
  ]),
  'Server-Sent Events': numbered([
    'group_event per health-bit transition of a member',
    'lagged for a consumer that fell behind',
    'a keep-alive ping every 30 s',
  ]),
  Errors: numbered(
    [
      'a group invisible to the caller yields 404, not 403',
      'with 0 healthy members public traffic receives 502',
      'rejections: subdomain in use, group key does not match, protocol mismatch',
    ],
    5,
  ),
  Limits: numbered([
    'health events of a tunnel: the last 50',
    'probe defaults: interval_secs 10, timeout_secs 3, max_failed 3',
    'alert webhook: 5 s, no retry',
    'SSE keep-alive: 30 s',
  ]),
  Contract: numbered([
    'lost sessions: members are gone at once, nothing is held for them, their group may end',
    'resumed sessions: members join again under their ids, in a fresh group when theirs is gone',
    'a new socket while the edge believes in the old one: no leave, no event, no alert, the bit kept',
    'ended on purpose: visitors get 404 at once',
    'https: shown as http; its http probe goes over TLS',
    'HTTP group without a subdomain: the group’s name, where it can be one',
    'group names: 1 to 100 printable characters without @',
    'a TCP join with a known name and another hash: refused to its members, a pool of one’s own for others',
    'refusals come in their order: name, owner, key, protocol',
    'enabled = false: group and health fields are accepted and ignored',
    'health_check without a group: probes run, events are recorded, traffic is never affected',
    'alert_webhook without type: no probe, healthy for ever, a destination all the same',
    'odd combinations are refused by the client at the line of the file, and by the edge',
    'group_key_hash: 64 lower-case hex digits of SHA-256 over the UTF-8 bytes',
    'the reply: TunnelRegistered with public_url, assigned_port, warnings to every member',
    'reports: never healthy counts, without event or alert; repeated counts; without a probe counts as none',
    'zero healthy, too, when the last healthy member leaves: its URL is told, member_count is after the leave',
    'zero healthy never when the group is gone, was never healthy, or the edge stops',
    'a member that joins healthy counts as becoming healthy',
    'alert URLs: tenants’ behind the guard, the operator’s not',
    'another member is tried while nothing reached a local service, any method, body and all',
    'another member is tried before the first response byte for GET without a body; a POST is never sent again',
    'TCP: another member is tried until one local connection is open, with the bytes that wait',
    'dispatch per connection: keep-alive stays, moves when its member is down, another host is routed anew',
    'HTTP, 0 healthy: 502 as page or JSON with x-tunnel-error; unknown subdomain 404',
    'TCP, 0 healthy: HTTP bytes get 502, everything else a reset',
    'label, counting: requests, dispatches and bytes',
    'REST auth: 401 without a key; its own means the account, whichever key',
    'GET /api/tunnels shows group and health of members',
    'a user token’s totals cover its members, present and past',
    'group_event data and ids; a stream ends with the last member of its reader',
    'metrics: name@label beside a living namesake; a group that comes back continues its series',
    'captures: in a group each account sees what its members served',
    'DELETE /api/tunnels/:id of a member: it leaves and does not come back',
  ]),
} as const;

export type Section = keyof typeof ROWS;

/** The name of a row's test; `more` tells several of one row apart. */
export const row = (section: Section, number: number, more = ''): string => {
  const text = ROWS[section].get(number);
  if (text === undefined) throw new Error(`${section} has no row ${number}`);
  const name = `${section}, ${RULES.has(section) ? 'rule' : 'row'} ${number}: ${text}`;
  return more === '' ? name : `${name} [${more}]`;
};
