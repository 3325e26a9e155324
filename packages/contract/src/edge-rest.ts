// The edge's REST: what `GET /api/...` on the api port answers, and the captured requests that the platform passes on. The OpenAPI
// document is made from these schemas.
import * as z from 'zod';
import { capturedPolicy, policySummary } from './edge-policy.ts';

/** How a tunnel's protocol is shown: a local service that speaks TLS is still an http tunnel to everybody outside, and TLS that passes unread is tcp. */
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
  .meta({ description: 'What the client calls its computer. Left out: it did not say.', examples: ['laptop'] });

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
    label: z.string().meta({
      description: 'http: the subdomain; tcp and udp: the port as text, of a tls tunnel its host; p2p: the name.',
    }),
    public_url: z.string().meta({ examples: ['tcp://localhost:20000'] }),
    assigned_port: z.int().min(1).max(65535).nullable(),
    group: z.string().nullable(),
    healthy: z.boolean(),
    client_addr: z.string().meta({ description: 'host:port the client connected from.' }),
    client_name: clientName,
    region_id: z.string(),
    request_count: count.meta({
      description: 'HTTP requests; connections for tcp; flows for udp; subscribers that joined for p2p.',
    }),
    bytes_proxied: count.meta({
      description:
        'Bytes carried both ways, without framing and TLS; counted while they flow. p2p: relayed ones alone.',
    }),
    connected_since: z.iso.datetime(),
    policy: policySummary
      .nullable()
      .optional()
      .meta({ description: 'null: open to everyone. Left out: the edge does not know policies.' }),
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

const size = z.int().min(0);
const headers = z.record(z.string(), z.string());
const body = z.string().nullable();

export const CAPTURE_LIST_LIMIT = { default: 50, min: 1, max: 100 } as const;
/**
 * Requests that an edge keeps of one tunnel. A page of the list has at most `CAPTURE_LIST_LIMIT.max` of them.
 * @limit dashboard: Captured requests per tunnel | the oldest request is dropped
 */
export const CAPTURES_KEPT_MAX = 200;
/** Characters of a cursor of the list. A longer text is no cursor. */
export const CAPTURE_CURSOR_MAX = 64;

export const capturedRequest = z
  .object({
    id: z.string().meta({ examples: ['req_k3b9f200001c'] }),
    tunnel_id: z.string().meta({ description: 'The tunnel that served it: in a group, the member.' }),
    at: z.iso.datetime().meta({ description: 'When its head came.' }),
    method: z.string(),
    path: z.string().meta({ description: 'As the visitor asked, with its query; secrets in it are redacted.' }),
    status: z.int().nullable().meta({ description: 'null: no answer yet, or none before the visitor left.' }),
    duration_ms: z.number().min(0).nullable().meta({ description: 'null: it is under way.' }),
    request_headers: headers.meta({ description: 'Names in lower case; secrets are redacted.' }),
    response_headers: headers.meta({
      description: 'Of the local service, or of the rule that answered; empty when there was neither.',
    }),
    request_size: size.meta({ description: 'Bytes of the body, as far as it came.' }),
    response_size: size.meta({ description: 'Bytes of the body, as far as it came.' }),
    request_body: body.meta({
      description: 'The first 16 KiB when it is text and captures keep bodies; for the owner of the tunnel only.',
    }),
    response_body: body.meta({ description: 'As request_body; unpacked when it was compressed.' }),
    aborted: z.boolean().meta({ description: 'The visitor left, or the answer was cut off.' }),
    error: z.string().nullable().meta({ description: 'The code of what went wrong; docs/errors.md lists them.' }),
    replayable: z.boolean().meta({ description: 'It was kept whole, and can be sent again.' }),
    replay_of: z.string().optional().meta({ description: 'It was sent by a replay: the id of the original.' }),
    edited: z.boolean().optional().meta({ description: 'The replay was edited before it was sent.' }),
    policy: capturedPolicy.nullable().optional().meta({
      description: 'What the rules of the tunnel did; null: there are none. Left out: the edge does not know policies.',
    }),
  })
  .meta({ id: 'CapturedRequest' });
export type CapturedRequest = z.infer<typeof capturedRequest>;

/** One call; whoever wants to wait longer calls again with the cursor. */
export const REQUEST_WAIT_SECS = { default: 30, min: 1, max: 30 } as const;
export const REQUEST_WAIT_BOUNDS = { methodMax: 32, pathMax: 8192, cursorMax: 64 } as const;

export const awaitedRequest = z
  .object({
    request: capturedRequest.nullable().meta({ description: 'The first that finished; null: none did in time.' }),
    cursor: z.string().nullable().meta({
      description: 'Without a request: for `after` of the next call, which misses nothing that finishes in between.',
    }),
  })
  .meta({ id: 'AwaitedRequest' });
export type AwaitedRequest = z.infer<typeof awaitedRequest>;

/** Of an edited replay: as long as a capture keeps, so that it can be edited in turn. The rules of heads come on top. */
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
        description: 'With its query. A value `[redacted]` in the query stands for the one that was captured.',
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
          'All of them, as name and value. A value `[redacted]` stands for the one that was captured. Host stays when it is left out; fields of the connection and the length of the body are set for you.',
        examples: [[['content-type', 'application/json']]],
      }),
    body: z.string().max(bodyMax).optional().meta({ description: 'Text, sent as UTF-8 and without Content-Encoding.' }),
  })
  .meta({ id: 'ReplayEdit', description: 'What to change before it is sent; what is left out stays as it was.' });
export type ReplayEdit = z.infer<typeof replayEdit>;

export const captureList = z
  .object({
    tunnel_id: z.string(),
    requests: z.array(capturedRequest).meta({ description: 'Newest first.' }),
    truncated: z.boolean().meta({ description: 'There were older ones than these, kept or not.' }),
    next_cursor: z
      .string()
      .nullable()
      .optional()
      .meta({
        description:
          'For `cursor` of the next call, which has the next older requests. null: no older ones are kept. Left out: the edge knows no pages.',
        examples: ['k3b9f2-1c'],
      }),
  })
  .meta({ id: 'CaptureList' });
export type CaptureList = z.infer<typeof captureList>;

/** Which requests one call of the list is for. */
export interface CapturePageQuery {
  readonly limit: number;
  readonly cursor?: string;
}

/** The newest `most` requests that are kept, page by page. */
export const collectCaptures = async (
  ask: (query: CapturePageQuery) => Promise<CaptureList>,
  most: number,
): Promise<CaptureList> => {
  const limitFor = (left: number): number => Math.min(left, CAPTURE_LIST_LIMIT.max);
  const first = await ask({ limit: limitFor(most) });
  const requests = [...first.requests];
  let last = first;
  // An empty page ends the loop, whatever its cursor says: each call brings the loop nearer to its end.
  while (typeof last.next_cursor === 'string' && last.requests.length > 0 && requests.length < most) {
    last = await ask({ limit: limitFor(most - requests.length), cursor: last.next_cursor });
    requests.push(...last.requests);
  }
  return { ...last, requests };
};

/** Why a datagram of a udp tunnel was not passed; each that was not is counted under one of them. */
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
    visitor: z.string().meta({ description: 'host:port of the visitor.' }),
    since: z.iso.datetime(),
    idle_ms: count.meta({ description: 'Since the last datagram that was passed, whichever way.' }),
    confirmed: z.boolean().meta({ description: 'The visitor sent something after a reply had been sent to it.' }),
    datagrams_in: count.meta({ description: 'From the visitor, and passed.' }),
    datagrams_out: count.meta({ description: 'Sent to the visitor.' }),
    bytes_in: count,
    bytes_out: count,
    dropped: count.meta({ description: 'Datagrams of either direction that were not passed.' }),
  })
  .meta({ id: 'Flow' });
export type EdgeFlow = z.infer<typeof edgeFlow>;

export const edgeFlows = z
  .object({
    flows: z.array(edgeFlow).meta({ description: 'The 200 last active ones, newest first.' }),
    total: count.meta({ description: 'Living flows.' }),
    dropped: z
      .record(dropReason, count)
      .meta({ description: 'Datagrams of this tunnel that were not passed, by reason; docs/udp.md explains them.' }),
    path: z.enum(['udp', 'carrier']).meta({ description: 'How datagrams go between edge and client now.' }),
    reason: z
      .enum(['', 'probing', 'udp-blocked', 'went-silent', 'off'])
      .meta({ description: 'Why they go on carriers; empty while they go over UDP.' }),
  })
  .meta({ id: 'Flows' });
export type EdgeFlows = z.infer<typeof edgeFlows>;

/** Why two peers go through the relay; docs/p2p.md has each in words. */
export const relayReason = z.enum([
  ...['', 'punching', 'udp-blocked', 'random-ports', 'no-answer', 'went-silent', 'off', 'no-transport'],
] as const);
export type RelayReason = z.infer<typeof relayReason>;

const edgePeer = z
  .object({
    peer_id: z.string(),
    client_addr: z.string().meta({ description: 'host:port the subscriber connected to the edge from.' }),
    service: z.enum(['tcp', 'udp']),
    path: z.enum(['direct', 'relay']).meta({ description: 'Of new connections, as the publisher reports it.' }),
    reason: relayReason.meta({ description: 'Why they go through the relay; empty while direct.' }),
    rtt_ms: z.number().min(0).nullable().meta({ description: 'As the publisher reports it; null: not measured yet.' }),
    connected_since: z.iso.datetime(),
    relayed_bytes: count.meta({ description: 'Through the edge, both ways: these are billed.' }),
    direct_bytes: count.meta({ description: 'As the publisher reports them; never billed.' }),
  })
  .meta({ id: 'Peer' });
export type EdgePeer = z.infer<typeof edgePeer>;

export const edgePeers = z
  .object({
    peers: z.array(edgePeer),
    total: count.meta({ description: 'Subscribers that are joined.' }),
  })
  .meta({ id: 'Peers' });
export type EdgePeers = z.infer<typeof edgePeers>;

/** Kinds of connections that an edge accepts. */
const connectionKind = z.enum(['http', 'https', 'tcp', 'control', 'carrier', 'rest', 'metrics', 'platform']);

export const edgeConnection = z
  .object({
    kind: connectionKind,
    phase: z.string().meta({ description: 'How far it has come; `accepted`: nothing was read of it yet.' }),
    waits_for: z.string().meta({ description: 'For people: whose turn it is.' }),
    age_secs: z.number().min(0),
    peer: z.string().meta({ description: 'host:port it came from.' }),
    network: z.string().nullable().meta({
      description:
        'What it counts for: the address, of IPv6 its /64. null: a trusted proxy, which counts by what it says.',
    }),
    account: z
      .string()
      .nullable()
      .meta({ description: 'Of a control connection or carrier that has authenticated: whom it counts for.' }),
    tunnel_id: z.string().nullable().meta({ description: 'The tunnel, or the member, that has it; null: none yet.' }),
  })
  .meta({ id: 'Connection' });
export type EdgeConnection = z.infer<typeof edgeConnection>;

const shareUse = z.object({ open: count, limit: count });

export const edgeConnections = z
  .object({
    total: count.meta({ description: 'Open connections of every kind.' }),
    shares: z
      .object({ visitors: shareUse, control: shareUse, api: shareUse })
      .meta({ description: 'visitors: http, https, tcp; control: control, carrier; api: rest, metrics.' }),
    connections: z.array(edgeConnection).meta({ description: 'Oldest first; the oldest 1000.' }),
    truncated: z.boolean().meta({ description: 'There are younger ones than these.' }),
  })
  .meta({ id: 'Connections' });
export type EdgeConnections = z.infer<typeof edgeConnections>;

const when = z.iso.datetime().nullable();

export const edgeCertificateView = z
  .object({
    names: z.array(z.string()),
    source: z.enum(['acme', 'file', 'local-ca']).meta({
      description: 'acme: ordered by itself, here or by the platform; file: of `[tls]`; local-ca: of `[tls] local_ca`.',
    }),
    state: z.enum(['none', 'ordering', 'valid', 'renewing', 'failing']),
    issuer: z.string().nullable(),
    not_before: when,
    not_after: when,
    renew_at: when.meta({
      description: 'When its renewal begins; null: nothing was issued yet, or it is not ours to renew.',
    }),
    last_error: z.string().nullable().meta({ description: 'Of the last try; null: it did not fail.' }),
  })
  .meta({ id: 'Certificate' });
export type EdgeCertificateView = z.infer<typeof edgeCertificateView>;

export const edgeCertificates = z.array(edgeCertificateView);

export const certificateRenewal = z
  .object({ name: z.string().min(1).max(255).meta({ description: 'One of its names.' }) })
  .meta({ id: 'CertificateRenewal' });
