// Control messages: JSON text frames on the WebSocket. `type` is the frame's name; all other fields are in snake_case. Unknown fields are
// ignored, so that newer versions can add fields.

import * as z from 'zod';
import { WIRE_LIMITS } from './limits.ts';

/** Maximum length of a message or reason for people. The sender cuts longer texts. */
export const CONTROL_TEXT_MAX_CHARS = 1000;

const id = z.string().min(1).max(100);
const requestId = z.string().min(1).max(64);
/** Text in a control message that is shown to people. encodeControl cuts longer texts. */
const textForPeople = z.string().max(CONTROL_TEXT_MAX_CHARS);
/** Error code from the sender's catalogue. Codes unknown to the receiver are allowed. */
const code = z.string().min(1).max(100);
/** Secret in a control message that is sent unchanged in an HTTP header, such as a carrier token. */
const secret = z
  .string()
  .max(200)
  .regex(/^[\x21-\x7e]+$/, 'must be visible ASCII');
const seconds = z.number().min(0).max(1e9);
const urlPath = z
  .string()
  .max(200)
  .regex(/^\/[\x21-\x7e]*$/, 'must be an absolute path');
const address = z.string().max(2048);
const port = z.int().min(1).max(65535);
const carrierTokensList = z.array(secret).max(WIRE_LIMITS.CARRIER_TOKENS_OUTSTANDING_MAX);
/** Capability names. Unknown names are ignored, so that the list can grow. */
const capabilities = z.array(z.string().min(1).max(64)).max(64).optional();
const carrierCount = z.int().min(1).max(WIRE_LIMITS.CARRIERS_PER_SESSION_MAX);
/** Name of a p2p tunnel. The receiver checks the syntax and reports errors. */
const p2pName = z.string().max(300);
/** SHA-256 of a p2p tunnel's secret. The secret itself is never sent. */
const p2pSecretHash = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');
/** Service type behind a p2p tunnel. Both ends must use the same type. */
const p2pService = z.enum(['tcp', 'udp']);
/** Name of a client's local service, sent unchanged in OPEN. */
const serviceName = z
  .string()
  .max(WIRE_LIMITS.OPEN_SERVICE_MAX_CHARS)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be letters, digits, `.`, `_` and `-`, a letter or digit first');
/** Address of a client as seen by the edge. */
const clientAddr = z.string().max(300);

/**
 * Client name for lists. Must not contain control, format, surrogate, private-use or unassigned characters, or line and paragraph
 * separators.
 */
const clientName = z
  .string()
  .regex(
    new RegExp(`^[^\\p{C}\\p{Zl}\\p{Zp}]{1,${WIRE_LIMITS.CLIENT_NAME_MAX_CHARS}}$`, 'u'),
    `must be 1 to ${WIRE_LIMITS.CLIENT_NAME_MAX_CHARS} printable characters`,
  );

export const tunnelProtocol = z.enum(['http', 'https', 'tcp', 'tls', 'udp', 'p2p']);
export type TunnelProtocol = z.infer<typeof tunnelProtocol>;

export const healthCheckSpec = z.object({
  type: z.enum(['tcp', 'http']).optional(),
  path: address.optional(),
  interval_secs: z.number().positive().max(86_400).default(10),
  timeout_secs: z.number().positive().max(3600).default(3),
  max_failed: z.int().min(1).max(1000).default(3),
  expect_2xx: z.boolean().default(true),
  alert_webhook: address.optional(),
});
export type HealthCheckSpec = z.infer<typeof healthCheckSpec>;

/** First frame of a client: offered versions, API key, and optionally the session to resume. */
const auth = () =>
  z.object({
    type: z.literal('Auth'),
    versions: z.array(z.int()).min(1).max(16),
    token: z.string().min(1).max(WIRE_LIMITS.CONTROL_TOKEN_MAX_CHARS),
    agent: z.string().max(200).default(''),
    resume: z.object({ session_id: id, secret }).optional(),
    capabilities,
    /** Name of the client's computer. */
    client_name: clientName.optional(),
  });

const authOk = () =>
  z.object({
    type: z.literal('AuthOk'),
    version: z.int(),
    session_id: id,
    /** True if the requested session was resumed. Its tunnels wait to be registered again with their ids. */
    resumed: z.boolean(),
    resume_secret: secret,
    resume_window_secs: seconds,
    region_id: z.string().max(100),
    ping_interval_secs: seconds,
    dead_after_secs: seconds,
    carriers: z.object({ count: carrierCount, path: urlPath, tokens: carrierTokensList }),
    /** Capabilities offered in Auth that the edge also supports. */
    capabilities,
    /** Display data from an edge with a platform: account, plan, region, and dashboard URL. */
    account: z.string().max(320).optional(),
    plan: z.string().max(100).optional(),
    region: z.object({ id: z.string().max(100), name: z.string().max(200) }).optional(),
    /** Address of the dashboard. `<dashboard_url>/tunnels/<tunnel_id>` is the page of a tunnel. */
    dashboard_url: address.optional(),
    /**
     * Management ports of the edge (REST, metrics), sent only to clients on the edge's machine. The client refuses to publish these ports.
     */
    local_ports: z.array(z.int().min(1).max(65_535)).max(16).optional(),
  });

const authError = () =>
  z.object({
    type: z.literal('AuthError'),
    code,
    message: textForPeople,
    retryable: z.boolean(),
    retry_after_secs: seconds.optional(),
  });

const registerTunnel = () =>
  z.object({
    type: z.literal('RegisterTunnel'),
    request_id: requestId,
    /** Earlier id of the tunnel in this session. The tunnel keeps the id and its port or name. */
    tunnel_id: id.optional(),
    name: z.string().max(200),
    protocol: tunnelProtocol,
    /** Address of the local service behind the tunnel, for display at the edge. */
    local_addr: z.string().max(300).default(''),
    /** Required public port of the tunnel. Registration fails if the port is taken. */
    remote_port: port.optional(),
    /** Preferred public port of the tunnel. Another port is assigned if the port is taken. */
    preferred_port: port.optional(),
    /** Required subdomain of the tunnel. Registration fails if the name is taken. */
    subdomain: z.string().max(300).optional(),
    /** Preferred subdomain of the tunnel. Another name is assigned if the name is taken. */
    preferred_subdomain: z.string().max(300).optional(),
    /** Custom domain for http, https and tls, instead of a subdomain. Checked by the receiver. */
    domain: z.string().max(300).optional(),
    /**
     * `keep` the visitor's Host header, `rewrite` it to local_addr, or send this value. Visible characters only, because the value goes into
     * a request head.
     */
    host_header: z
      .string()
      .regex(/^[!-~]{1,255}$/)
      .default('keep'),
    /** Protocol of the local HTTP service. */
    local_protocol: z.enum(['http1', 'h2c']).default('http1'),
    /** True if the tunnel's requests can be captured for inspection and replay. */
    capture: z.boolean().default(true),
    /** Idle timeout of a UDP flow in seconds. The edge's default applies if undefined. */
    idle_secs: z.int().min(5).max(3600).optional(),
    p2p_name: p2pName.optional(),
    p2p_secret_hash: p2pSecretHash.optional(),
    p2p_service: p2pService.optional(),
    /** API keys that can connect with the secret: keys of the publisher's account, or any key of the edge. */
    p2p_allow: z.enum(['account', 'anyone']).optional(),
    group: z.string().max(300).optional(),
    group_key_hash: z.string().max(100).optional(),
    health_check: healthCheckSpec.optional(),
    /** Policy of the tunnel. Checked by the receiver's schema, so that errors can name the rule. Here only the frame size limits it. */
    policy: z.unknown().optional(),
    /** Revision of a group's policy. A member with a higher revision replaces the policy of all members. */
    policy_revision: z.int().min(0).optional(),
    /** Services that `route` in the policy can name. The client knows their addresses. */
    services: z.array(serviceName).max(WIRE_LIMITS.REGISTER_SERVICES_MAX).optional(),
    /** Version of the PROXY header written by the client, for tcp and tls. OPEN then contains the public address. */
    proxy_protocol: z.enum(['v1', 'v2']).optional(),
  });

const tunnelRegistered = () =>
  z.object({
    type: z.literal('TunnelRegistered'),
    request_id: requestId,
    tunnel_id: id,
    name: z.string().max(200),
    protocol: tunnelProtocol,
    label: z.string().max(300),
    public_url: address,
    assigned_port: port.optional(),
    warnings: z.array(textForPeople).max(100).default([]),
    /**
     * Hash of the policy and services as read by the edge. A client that sent a policy closes the tunnel if the hash is missing or differs.
     */
    policy_hash: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits')
      .optional(),
  });

/** Answers a registration (request_id), or ends an open tunnel (only tunnel_id). The client does not register the tunnel again. */
const tunnelError = () =>
  z.object({
    type: z.literal('TunnelError'),
    request_id: requestId.optional(),
    tunnel_id: id.optional(),
    code,
    message: textForPeople,
    retryable: z.boolean(),
    /** Tunnel of the same account that holds the refused name. Not sent if another account holds the name. */
    held_by: z.object({ name: z.string().max(200), client_name: clientName.optional() }).optional(),
  });

/** Sent to the first member of a TCP group when the listener is bound. */
const registered = () => z.object({ type: z.literal('Registered'), tunnel_id: id, assigned_port: port });

const unregisterTunnel = () => z.object({ type: z.literal('UnregisterTunnel'), request_id: requestId, tunnel_id: id });
const tunnelUnregistered = () =>
  z.object({ type: z.literal('TunnelUnregistered'), request_id: requestId, tunnel_id: id });

const tunnelHealthy = () => z.object({ type: z.literal('TunnelHealthy'), tunnel_id: id });
const tunnelUnhealthy = () =>
  z.object({
    type: z.literal('TunnelUnhealthy'),
    tunnel_id: id,
    reason: textForPeople.default(''),
    consecutive_failures: z.int().min(0),
  });

/** Requests tokens for `count` more carriers. Sent by the client. */
const requestCarriers = () => z.object({ type: z.literal('RequestCarriers'), count: carrierCount });
const carrierTokens = () => z.object({ type: z.literal('CarrierTokens'), tokens: carrierTokensList });

const ping = () => z.object({ type: z.literal('Ping'), id: z.int() });
const pong = () => z.object({ type: z.literal('Pong'), id: z.int() });

/**
 * Sent by either side: no new streams are accepted, and existing streams can finish within `drain_secs`. From a client, also announces an
 * intended end.
 */
const shuttingDown = () => z.object({ type: z.literal('ShuttingDown'), reason: textForPeople, drain_secs: seconds });

// ---- the UDP path of datagrams (capability `datagram`), peers (capability `p2p`) ----

/** AES-256 key of a UDP path in base64url without padding. */
const pathKey = z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url');
const sealedPath = z.object({
  id: z.string().regex(/^[0-9a-f]{16}$/, 'must be 16 lower-case hex digits'),
  key_to_edge: pathKey,
  key_to_client: pathKey,
});
export type SealedPath = z.infer<typeof sealedPath>;

/**
 * Sent by the edge after AuthOk and before any TunnelRegistered, with fresh ids and keys for this connection. Keys of earlier connections
 * are invalid.
 */
const datagramPath = () =>
  z.object({
    type: z.literal('DatagramPath'),
    /** Two UDP ports of the edge. Both accept every packet; together they show how a NAT maps a socket. */
    ports: z.tuple([port, port]),
    /** Keys for datagrams. The client's address is the source of its newest authenticated packet. Null if datagrams stay on carriers. */
    path: sealedPath.nullable(),
    /** Keys for PING and PONG only, from any socket, to find the client's public addresses. Null if not offered. */
    observe: sealedPath.nullable(),
  });

/** Why a client dropped a datagram. */
const clientDropReason = z.enum(['behind', 'path', 'away', 'local', 'too-large']);

const datagramDrop = z.object({
  /** Address of the visitor who sent or should have received the dropped datagrams. Empty if the client no longer knows it. */
  visitor: z.string().max(300),
  /** `in`: from the visitor, passed by the edge to the client. `out`: from the local service. */
  direction: z.enum(['in', 'out']),
  reason: clientDropReason,
  datagrams: z.int().min(1),
});
export type DatagramDrop = z.infer<typeof datagramDrop>;

/**
 * Datagrams of a UDP tunnel dropped since the last message. Sent by the client (capability `datagram-drops`). Each datagram is counted
 * once.
 */
const datagramDrops = () =>
  z.object({
    type: z.literal('DatagramDrops'),
    tunnel_id: id,
    drops: z.array(datagramDrop).min(1).max(WIRE_LIMITS.DATAGRAM_DROPS_PER_MESSAGE),
  });

/** Joins a publisher. Sent by a subscribing client. `peer_id` is its earlier id in this session. */
const connectPeer = () =>
  z.object({
    type: z.literal('ConnectPeer'),
    request_id: requestId,
    p2p_name: p2pName,
    p2p_secret_hash: p2pSecretHash,
    service: p2pService,
    peer_id: id.optional(),
  });
const peerConnected = () => z.object({ type: z.literal('PeerConnected'), request_id: requestId, peer_id: id });

/** Rejects a ConnectPeer (with request_id), or ends a peer's existing join (only peer_id). */
const peerError = () =>
  z.object({
    type: z.literal('PeerError'),
    request_id: requestId.optional(),
    peer_id: id.optional(),
    code,
    message: textForPeople,
    retryable: z.boolean(),
  });

/** Sent by a subscriber that leaves a p2p tunnel. */
const disconnectPeer = () => z.object({ type: z.literal('DisconnectPeer'), peer_id: id });

/** Sent to the publisher of a p2p tunnel when a subscriber joins. */
const peerJoined = () =>
  z.object({ type: z.literal('PeerJoined'), tunnel_id: id, peer_id: id, client_addr: clientAddr });
const peerGone = () =>
  z.object({
    type: z.literal('PeerGone'),
    tunnel_id: id,
    peer_id: id,
    reason: z.enum(['left', 'dismissed', 'revoked', 'lost']),
  });

/** Why a p2p peer uses the relay. Empty while the path is direct. */
const relayReason = z.enum([
  '',
  'punching',
  'udp-blocked',
  'random-ports',
  'no-answer',
  'went-silent',
  'off',
  'no-transport',
]);

/** Outcome of an attempt to connect two p2p peers directly. */
const directOutcome = z.enum(['direct', 'udp-blocked', 'random-ports', 'no-answer', 'no-transport']);
export type DirectOutcome = z.infer<typeof directOutcome>;

/** State of a peer's path, for display at the edge. Sent by the publisher on every change, and periodically while bytes are transferred. */
const peerReport = () =>
  z.object({
    type: z.literal('PeerReport'),
    tunnel_id: id,
    peer_id: id,
    path: z.enum(['direct', 'relay']),
    reason: relayReason,
    rtt_ms: z.number().min(0).max(1e9).nullable(),
    /** Bytes on the direct path since the peer joined, in both directions. */
    direct_bytes: z.int().min(0),
    /** Outcome of an attempt to connect directly that has just ended. */
    attempt: directOutcome.optional(),
  });

// ---- requests that the edge answered itself (capability `edge-answers`) ----

/**
 * A visitor got a response from the edge itself, because the service is down, a rule rejected the visitor, or for a similar reason. At most
 * EDGE_ANSWERS_PER_SECOND per tunnel are sent; EdgeAnsweredMore counts the rest.
 */
const edgeAnswered = () =>
  z.object({
    type: z.literal('EdgeAnswered'),
    tunnel_id: id,
    /** Id of the visitor's request, as used in captures. */
    request_id: requestId,
    /** Start time of the visitor's request. */
    at: z.iso.datetime(),
    method: z.string().max(WIRE_LIMITS.EDGE_ANSWERED_METHOD_MAX_CHARS),
    /** Path of the visitor's request with query, redacted as in captures. The sender cuts longer paths. */
    path: z.string().max(WIRE_LIMITS.EDGE_ANSWERED_PATH_MAX_CHARS),
    status: z.int().min(100).max(999),
    /** Null if the response is not an error, for example a redirect by a rule. */
    code: code.nullable(),
    /** Name of the rule that responded, its number if it has no name, or `of the operator`. Null if no rule responded. */
    rule: z.string().max(200).nullable(),
    duration_ms: z.number().min(0).max(1e9),
  });

/** Number of further requests of the tunnel answered by the edge in the last second. */
const edgeAnsweredMore = () => z.object({ type: z.literal('EdgeAnsweredMore'), tunnel_id: id, count: z.int().min(1) });

/** Reports an error. If `fatal` is true, the session ends, and the client reconnects only if `retryable` is true. */
const error = () =>
  z.object({
    type: z.literal('Error'),
    code,
    message: textForPeople,
    retryable: z.boolean().default(false),
    fatal: z.boolean().default(false),
  });

/**
 * Schema of each message, by its type. A schema is made when the first message of its type arrives: a client receives few types, and making
 * all schemas takes longer than connecting.
 */
export const CONTROL_SCHEMAS = {
  Auth: z.lazy(auth),
  AuthOk: z.lazy(authOk),
  AuthError: z.lazy(authError),
  RegisterTunnel: z.lazy(registerTunnel),
  TunnelRegistered: z.lazy(tunnelRegistered),
  TunnelError: z.lazy(tunnelError),
  Registered: z.lazy(registered),
  UnregisterTunnel: z.lazy(unregisterTunnel),
  TunnelUnregistered: z.lazy(tunnelUnregistered),
  TunnelHealthy: z.lazy(tunnelHealthy),
  TunnelUnhealthy: z.lazy(tunnelUnhealthy),
  RequestCarriers: z.lazy(requestCarriers),
  CarrierTokens: z.lazy(carrierTokens),
  Ping: z.lazy(ping),
  Pong: z.lazy(pong),
  ShuttingDown: z.lazy(shuttingDown),
  DatagramPath: z.lazy(datagramPath),
  DatagramDrops: z.lazy(datagramDrops),
  ConnectPeer: z.lazy(connectPeer),
  PeerConnected: z.lazy(peerConnected),
  PeerError: z.lazy(peerError),
  DisconnectPeer: z.lazy(disconnectPeer),
  PeerJoined: z.lazy(peerJoined),
  PeerGone: z.lazy(peerGone),
  PeerReport: z.lazy(peerReport),
  EdgeAnswered: z.lazy(edgeAnswered),
  EdgeAnsweredMore: z.lazy(edgeAnsweredMore),
  Error: z.lazy(error),
} as const;

type Schemas = typeof CONTROL_SCHEMAS;
export type ControlType = keyof Schemas;
export type MessageOf<T extends ControlType> = z.infer<Schemas[T]>;
export type ControlMessage = { [T in ControlType]: MessageOf<T> }[ControlType];

/** Control message as senders write it: fields with defaults can be omitted. */
export type ControlMessageInput = { [T in ControlType]: z.input<Schemas[T]> }[ControlType];

export const CONTROL_TYPES = Object.keys(CONTROL_SCHEMAS) as readonly ControlType[];
