// Schemas of the edge's REST API: the responses of `GET /api/...` on the API port, and the captured requests forwarded by the platform.
// The OpenAPI document is generated from these schemas.
import * as z from 'zod';
import { capturedPolicy, policySummary } from './edge-policy.ts';

/**
 * Protocols of tunnels as shown to users. A tunnel to a local service with TLS is shown as http, because visitors see an http tunnel. A
 * tunnel that forwards TLS without decrypting is shown as tcp.
 */
export const shownProtocol = z.enum(['http', 'tcp', 'udp', 'p2p']);
export type ShownProtocol = z.infer<typeof shownProtocol>;

export const showProtocol = (protocol: ShownProtocol | 'https' | 'tls'): ShownProtocol => {
  if (protocol === 'https') return 'http';
  return protocol === 'tls' ? 'tcp' : protocol;
};

const count = z.int().min(0);

export const clientName = z
  .string()
  .optional()
  .meta({
    description: "The name of the client's computer. Omitted if the client reported no name.",
    examples: ['laptop'],
  });

export const edgeStatus = z
  .object({
    ok: z.boolean(),
    version: z.string(),
    region_id: z.string(),
    sessions: count,
    tunnels: count,
    uptime_secs: z.number().min(0),
    draining: z.boolean().meta({
      description:
        'True while the edge is shutting down: the edge accepts no new connections and exits after the last open connection.',
    }),
  })
  .meta({ id: 'EdgeStatus' });
export type EdgeStatus = z.infer<typeof edgeStatus>;

export const edgeTunnel = z
  .object({
    tunnel_id: z.string().meta({ examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
    session_id: z.string(),
    name: z.string(),
    protocol: shownProtocol,
    label: z.string().meta({
      description: 'The subdomain (http), the port as text (tcp, udp), the host name (tls) or the p2p name.',
    }),
    public_url: z.string().meta({ examples: ['tcp://localhost:20000'] }),
    assigned_port: z.int().min(1).max(65535).nullable(),
    group: z.string().nullable(),
    healthy: z.boolean(),
    client_addr: z.string().meta({ description: "The client's address as host:port." }),
    client_name: clientName,
    region_id: z.string(),
    request_count: count.meta({
      description: 'The number of HTTP requests, tcp connections, udp flows or p2p subscribers.',
    }),
    bytes_proxied: count.meta({
      description:
        'Bytes transferred in both directions, without framing and TLS, updated continuously. For p2p tunnels: relayed bytes only.',
    }),
    connected_since: z.iso.datetime(),
    policy: policySummary.nullable().optional().meta({
      description:
        'The policy of the tunnel, or null if the tunnel is open to everyone. Omitted by edges without policy support.',
    }),
  })
  .meta({ id: 'Tunnel' });
export type EdgeTunnel = z.infer<typeof edgeTunnel>;

export const edgeTunnels = z.array(edgeTunnel);

export const edgeRegion = z
  .object({
    id: z.string(),
    name: z.string(),
    location: z.string(),
    current: z.boolean().meta({ description: 'True for the region that sent the response.' }),
  })
  .meta({ id: 'Region' });
export type EdgeRegion = z.infer<typeof edgeRegion>;

export const edgeRegions = z.array(edgeRegion);

const size = z.int().min(0);
const headers = z.record(z.string(), z.string());
const body = z.string().nullable();

export const CAPTURE_LIST_LIMIT = { default: 50, min: 1, max: 100 } as const;
/**
 * Maximum captured requests stored per tunnel. A page of the list has at most `CAPTURE_LIST_LIMIT.max` requests.
 * @limit dashboard: Captured requests per tunnel | the oldest request is dropped
 */
export const CAPTURES_KEPT_MAX = 200;
/** Maximum length of a cursor in the list of captured requests. Longer text is rejected as a cursor. */
export const CAPTURE_CURSOR_MAX = 64;

export const capturedRequest = z
  .object({
    id: z.string().meta({ examples: ['req_k3b9f200001c'] }),
    tunnel_id: z.string().meta({ description: 'The tunnel that served the request. In a group: the member.' }),
    at: z.iso.datetime().meta({ description: 'The time at which the request headers arrived.' }),
    method: z.string(),
    path: z.string().meta({ description: 'The request path with the query string. Secrets are redacted.' }),
    status: z.int().nullable().meta({
      description:
        'The response status, or null if there is no response yet or the visitor disconnected before the response.',
    }),
    duration_ms: z
      .number()
      .min(0)
      .nullable()
      .meta({ description: 'The duration in milliseconds, or null while the request is in progress.' }),
    request_headers: headers.meta({
      description: 'The request headers with names in lower case. Secrets are redacted.',
    }),
    response_headers: headers.meta({
      description: 'The response headers of the local service, or of the rule that answered. Empty without a response.',
    }),
    request_size: size.meta({ description: 'The size of the transferred body in bytes.' }),
    response_size: size.meta({ description: 'The size of the transferred body in bytes.' }),
    request_body: body.meta({
      description: "The first 16 KiB of a text body, if body capture is on. Visible only to the tunnel's owner.",
    }),
    response_body: body.meta({
      description: 'The first 16 KiB of a text body, decompressed. Same conditions as request_body.',
    }),
    aborted: z.boolean().meta({ description: 'True if the visitor disconnected early or the response was cut off.' }),
    error: z
      .string()
      .nullable()
      .meta({ description: 'The error code, or null if the request succeeded. docs/errors.md lists the codes.' }),
    replayable: z
      .boolean()
      .meta({ description: 'True if the complete request was captured, so a replay is possible.' }),
    replay_of: z.string().optional().meta({ description: 'For a replay: the id of the original request.' }),
    edited: z.boolean().optional().meta({ description: 'True if the request was edited before the replay.' }),
    policy: capturedPolicy.nullable().optional().meta({
      description:
        'The effect of the policy on the request, or null if the tunnel has no policy. Omitted by edges without policy support.',
    }),
  })
  .meta({ id: 'CapturedRequest' });
export type CapturedRequest = z.infer<typeof capturedRequest>;

/** Seconds that one call waits for a request. To wait longer, the caller calls again with the cursor. */
export const REQUEST_WAIT_SECS = { default: 30, min: 1, max: 30 } as const;
export const REQUEST_WAIT_BOUNDS = { methodMax: 32, pathMax: 8192, cursorMax: 64 } as const;

export const awaitedRequest = z
  .object({
    request: capturedRequest
      .nullable()
      .meta({ description: 'The first matching request to finish, or null on timeout.' }),
    cursor: z.string().nullable().meta({
      description: 'The value for `after` in the next call if no request came. No request is missed between the calls.',
    }),
  })
  .meta({ id: 'AwaitedRequest' });
export type AwaitedRequest = z.infer<typeof awaitedRequest>;

/**
 * Limits of an edited replay. They match the limits of a capture, so that the replay can be captured and edited again. The limits for
 * request heads apply in addition.
 */
export const REPLAY_EDIT_BOUNDS = {
  methodMax: 32,
  pathMax: 8192,
  headersMax: 128,
  valueMax: 8192,
  bodyMax: 16_384,
} as const;

const { methodMax, pathMax, headersMax, valueMax, bodyMax } = REPLAY_EDIT_BOUNDS;

export const replayEdit = z
  .strictObject({
    method: z.string().min(1).max(methodMax).optional(),
    path: z
      .string()
      .min(1)
      .max(pathMax)
      .optional()
      .meta({
        description:
          'The path with the query string. A `[redacted]` value in the query is replaced by the captured value.',
        examples: ['/webhook?attempt=2'],
      }),
    headers: z
      .array(
        z
          .tuple([z.string().min(1).max(valueMax), z.string().max(valueMax)])
          .meta({ items: { type: 'string' }, minItems: 2, maxItems: 2 }),
      )
      .max(headersMax)
      .optional()
      .meta({
        description:
          'The complete list of headers as name-value pairs. A `[redacted]` value is replaced by the captured value. Without a Host header, the original Host is kept. Connection headers and Content-Length are set automatically.',
        examples: [[['content-type', 'application/json']]],
      }),
    body: z
      .string()
      .max(bodyMax)
      .optional()
      .meta({ description: 'The body as text, sent as UTF-8 without Content-Encoding.' }),
  })
  .meta({
    id: 'ReplayEdit',
    description: 'Changes to make before the replay. Omitted fields keep the captured value.',
  });
export type ReplayEdit = z.infer<typeof replayEdit>;

export const captureList = z
  .object({
    tunnel_id: z.string(),
    requests: z.array(capturedRequest).meta({ description: 'Newest first.' }),
    truncated: z.boolean().meta({ description: 'True if there were older requests, even if no longer stored.' }),
    next_cursor: z
      .string()
      .nullable()
      .optional()
      .meta({
        description:
          'The `cursor` for the next page of older requests, or null on the last page. Omitted by edges without pagination.',
        examples: ['k3b9f2-1c'],
      }),
  })
  .meta({ id: 'CaptureList' });
export type CaptureList = z.infer<typeof captureList>;

/** Query parameters for one page of captured requests. */
export interface CapturePageQuery {
  readonly limit: number;
  readonly cursor?: string;
}

/** Collects the newest captured requests page by page, up to `most`. */
export const collectCaptures = async (
  ask: (query: CapturePageQuery) => Promise<CaptureList>,
  most: number,
): Promise<CaptureList> => {
  const limitFor = (left: number): number => Math.min(left, CAPTURE_LIST_LIMIT.max);
  const first = await ask({ limit: limitFor(most) });
  const requests = [...first.requests];
  let last = first;
  // An empty page ends the loop even if the page has a cursor, so that the loop always terminates.
  while (typeof last.next_cursor === 'string' && last.requests.length > 0 && requests.length < most) {
    last = await ask({ limit: limitFor(most - requests.length), cursor: last.next_cursor });
    requests.push(...last.requests);
  }
  return { ...last, requests };
};

/** Reasons for dropping a datagram of a udp tunnel. Every dropped datagram is counted under one reason. */
export const dropReason = z.enum([
  ...[
    'behind',
    'path',
    'limit',
    'share',
    'rate',
    'unconfirmed',
    'loop',
    'away',
    'local',
    'too-large',
    'unopened',
    'denied',
  ],
] as const);
export type DropReason = z.infer<typeof dropReason>;

const edgeFlow = z
  .object({
    visitor: z.string().meta({ description: "The visitor's address as host:port." }),
    since: z.iso.datetime(),
    idle_ms: count.meta({ description: 'Milliseconds since the last datagram in either direction.' }),
    confirmed: z.boolean().meta({ description: 'True once the visitor has sent a datagram after receiving a reply.' }),
    datagrams_in: count.meta({ description: 'Datagrams from the visitor delivered to the client.' }),
    datagrams_out: count.meta({ description: 'Datagrams sent to the visitor.' }),
    bytes_in: count,
    bytes_out: count,
    dropped: count.meta({ description: 'Dropped datagrams in both directions.' }),
  })
  .meta({ id: 'Flow' });
export type EdgeFlow = z.infer<typeof edgeFlow>;

export const edgeFlows = z
  .object({
    flows: z.array(edgeFlow).meta({ description: 'The 200 most recently active flows, newest first.' }),
    total: count.meta({ description: 'The number of open flows.' }),
    dropped: z
      .record(dropReason, count)
      .meta({ description: 'Dropped datagrams by reason. docs/udp.md explains the reasons.' }),
    path: z
      .enum(['udp', 'carrier'])
      .meta({ description: 'The current path of datagrams between the edge and the client.' }),
    reason: z
      .enum(['', 'probing', 'udp-blocked', 'went-silent', 'off'])
      .meta({ description: 'Why datagrams use carriers instead of UDP. Empty while UDP is in use.' }),
  })
  .meta({ id: 'Flows' });
export type EdgeFlows = z.infer<typeof edgeFlows>;

/** Reasons why two peers use the relay instead of a direct path. docs/p2p.md explains the reasons. */
export const relayReason = z.enum([
  ...['', 'punching', 'udp-blocked', 'random-ports', 'no-answer', 'went-silent', 'off', 'no-transport'],
] as const);
export type RelayReason = z.infer<typeof relayReason>;

const edgePeer = z
  .object({
    peer_id: z.string(),
    client_addr: z.string().meta({ description: "The subscriber's address, as seen by the edge, as host:port." }),
    service: z.enum(['tcp', 'udp']),
    path: z.enum(['direct', 'relay']).meta({ description: 'The path of new connections, reported by the publisher.' }),
    reason: relayReason.meta({ description: 'Why connections use the relay. Empty while the path is direct.' }),
    rtt_ms: z.number().min(0).nullable().meta({
      description: 'The round-trip time in milliseconds, reported by the publisher. Null before the first measurement.',
    }),
    connected_since: z.iso.datetime(),
    relayed_bytes: count.meta({ description: 'Bytes relayed by the edge in both directions (billed).' }),
    direct_bytes: count.meta({ description: 'Bytes sent directly, reported by the publisher (never billed).' }),
  })
  .meta({ id: 'Peer' });
export type EdgePeer = z.infer<typeof edgePeer>;

export const edgePeers = z
  .object({
    peers: z.array(edgePeer),
    total: count.meta({ description: 'The number of connected subscribers.' }),
  })
  .meta({ id: 'Peers' });
export type EdgePeers = z.infer<typeof edgePeers>;

/** Kinds of connections that an edge accepts. */
const connectionKind = z.enum(['http', 'https', 'tcp', 'control', 'carrier', 'rest', 'metrics', 'platform']);

export const edgeConnection = z
  .object({
    kind: connectionKind,
    phase: z.string().meta({ description: 'The state of the connection. `accepted`: no bytes received yet.' }),
    waits_for: z.string().meta({ description: 'Readable text: the side or event the connection is waiting for.' }),
    age_secs: z.number().min(0),
    peer: z.string().meta({ description: 'The remote address as host:port.' }),
    network: z.string().nullable().meta({
      description:
        'The network the connection is counted under: the IPv4 address or the IPv6 /64. Null for a trusted proxy, which is counted by the forwarded addresses.',
    }),
    account: z
      .string()
      .nullable()
      .meta({ description: 'The account of an authenticated control connection or carrier.' }),
    tunnel_id: z.string().nullable().meta({
      description: 'The tunnel (in a group: the member) serving the connection, or null if not assigned yet.',
    }),
  })
  .meta({ id: 'Connection' });
export type EdgeConnection = z.infer<typeof edgeConnection>;

const shareUse = z.object({ open: count, limit: count });

export const edgeConnections = z
  .object({
    total: count.meta({ description: 'The number of open connections of any kind.' }),
    shares: z.object({ visitors: shareUse, control: shareUse, api: shareUse }).meta({
      description:
        'Open connections and limits by share: visitors (http, https, tcp), control (control, carrier), api (rest, metrics).',
    }),
    connections: z.array(edgeConnection).meta({ description: 'The 1000 oldest connections, oldest first.' }),
    truncated: z.boolean().meta({ description: 'True if there are more connections than listed.' }),
  })
  .meta({ id: 'Connections' });
export type EdgeConnections = z.infer<typeof edgeConnections>;

const when = z.iso.datetime().nullable();

export const edgeCertificateView = z
  .object({
    names: z.array(z.string()),
    source: z.enum(['acme', 'file', 'local-ca']).meta({
      description:
        'Where the certificate comes from. acme: issued automatically, by the edge or the platform. file: set in `[tls]`. local-ca: set in `[tls] local_ca`.',
    }),
    state: z.enum(['none', 'ordering', 'valid', 'renewing', 'failing']),
    issuer: z.string().nullable(),
    not_before: when,
    not_after: when,
    renew_at: when.meta({
      description:
        'The time of the next renewal. Null before the first issue, or if the certificate is not renewed by the server.',
    }),
    last_error: z
      .string()
      .nullable()
      .meta({ description: 'The error of the last attempt, or null if the attempt succeeded.' }),
  })
  .meta({ id: 'Certificate' });
export type EdgeCertificateView = z.infer<typeof edgeCertificateView>;

export const edgeCertificates = z.array(edgeCertificateView);

export const certificateRenewal = z
  .object({ name: z.string().min(1).max(255).meta({ description: 'Any name of the certificate.' }) })
  .meta({ id: 'CertificateRenewal' });
