// The control messages: JSON text frames on the WebSocket. `type` is the frame's name, all other fields are snake_case. Unknown fields
// are ignored, so that a newer side can say more.

import * as z from 'zod';
import { WIRE_LIMITS } from './limits.ts';

/** a message or reason for people; a longer one is cut by its sender */
export const CONTROL_TEXT_MAX_CHARS = 1000;

const id = z.string().min(1).max(100);
const requestId = z.string().min(1).max(64);
/** For people: encodeControl cuts a longer one. */
const textForPeople = z.string().max(CONTROL_TEXT_MAX_CHARS);
/** A code of the sender's catalogue; one the receiver does not know is no error. */
const code = z.string().min(1).max(100);
/** Goes into an HTTP header as it is. */
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
/** Names alone: one that is not known is passed over, so a list may grow. */
const capabilities = z.array(z.string().min(1).max(64)).max(64).optional();
const carrierCount = z.int().min(1).max(WIRE_LIMITS.CARRIERS_PER_SESSION_MAX);
/** The receiver judges its grammar, and says what is wrong with it. */
const p2pName = z.string().max(300);
/** SHA-256 of the secret, which itself is never sent. */
const p2pSecretHash = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');
/** What stands behind a p2p tunnel; both ends say the same. */
const p2pService = z.enum(['tcp', 'udp']);
/** Of one of the client's services: goes into OPEN as it is. */
const serviceName = z
  .string()
  .max(WIRE_LIMITS.OPEN_SERVICE_MAX_CHARS)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be letters, digits, `.`, `_` and `-`, a letter or digit first');
/** Of a client, as the edge sees it. */
const clientAddr = z.string().max(300);

/** Goes into lists for people. No control, format, surrogate, private or unassigned character, no line or paragraph separator. */
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

/** The first frame: versions offered, the key, and the session to take up again, if any. */
const auth = z.object({
  type: z.literal('Auth'),
  versions: z.array(z.int()).min(1).max(16),
  token: z.string().min(1).max(WIRE_LIMITS.CONTROL_TOKEN_MAX_CHARS),
  agent: z.string().max(200).default(''),
  resume: z.object({ session_id: id, secret }).optional(),
  capabilities,
  /** What the client calls its computer. */
  client_name: clientName.optional(),
});

const authOk = z.object({
  type: z.literal('AuthOk'),
  version: z.int(),
  session_id: id,
  /** true: this is the session asked for, and its tunnels wait to be registered again under their ids. */
  resumed: z.boolean(),
  resume_secret: secret,
  resume_window_secs: seconds,
  region_id: z.string().max(100),
  ping_interval_secs: seconds,
  dead_after_secs: seconds,
  carriers: z.object({ count: carrierCount, path: urlPath, tokens: carrierTokensList }),
  /** What both know of those that Auth offered. */
  capabilities,
  /** For people, of an edge that has a platform: whose key it is, its plan, where the edge is, and the pages of the platform. */
  account: z.string().max(320).optional(),
  plan: z.string().max(100).optional(),
  region: z.object({ id: z.string().max(100), name: z.string().max(200) }).optional(),
  /** `<dashboard_url>/tunnels/<tunnel_id>` is the page of a tunnel. */
  dashboard_url: address.optional(),
  /** To clients on the edge's own machine: ports where the edge itself is managed (REST, metrics). They are never published. */
  local_ports: z.array(z.int().min(1).max(65_535)).max(16).optional(),
});

const authError = z.object({
  type: z.literal('AuthError'),
  code,
  message: textForPeople,
  retryable: z.boolean(),
  retry_after_secs: seconds.optional(),
});

const registerTunnel = z.object({
  type: z.literal('RegisterTunnel'),
  request_id: requestId,
  /** The id the tunnel had in this session before: it keeps it, and its port or name. */
  tunnel_id: id.optional(),
  name: z.string().max(200),
  protocol: tunnelProtocol,
  /** For people who look at the edge: what stands behind the tunnel. */
  local_addr: z.string().max(300).default(''),
  /** This port or none. */
  remote_port: port.optional(),
  /** This port when it is free, else another one. */
  preferred_port: port.optional(),
  /** This name or none. */
  subdomain: z.string().max(300).optional(),
  /** This name when it is free, else another one. */
  preferred_subdomain: z.string().max(300).optional(),
  /** http, https, tls: a host of the owner's own in the place of a subdomain. The receiver judges it. */
  domain: z.string().max(300).optional(),
  /** `keep` the visitor's Host, `rewrite` it to local_addr, or send this one. It goes into a request head: visible characters only. */
  host_header: z
    .string()
    .regex(/^[!-~]{1,255}$/)
    .default('keep'),
  /** What the local HTTP service speaks. */
  local_protocol: z.enum(['http1', 'h2c']).default('http1'),
  /** Whether requests may be kept for a look and a replay. */
  capture: z.boolean().default(true),
  /** udp: how long a flow may be silent; absent: as the edge has it. */
  idle_secs: z.int().min(5).max(3600).optional(),
  p2p_name: p2pName.optional(),
  p2p_secret_hash: p2pSecretHash.optional(),
  p2p_service: p2pService.optional(),
  /** Who may connect beside those of the publisher's account. */
  p2p_allow: z.enum(['account', 'anyone']).optional(),
  group: z.string().max(300).optional(),
  group_key_hash: z.string().max(100).optional(),
  health_check: healthCheckSpec.optional(),
  /** The receiver judges it by its own schema, so that a refusal can name the rule; the frame bounds it here. */
  policy: z.unknown().optional(),
  /** Groups: a member with a higher one replaces the policy of all. */
  policy_revision: z.int().min(0).optional(),
  /** What `route` of the policy may name; where they lead is the client's matter. */
  services: z.array(serviceName).max(WIRE_LIMITS.REGISTER_SERVICES_MAX).optional(),
  /** tcp, tls: the client writes such a header, and wants the public address in each OPEN. */
  proxy_protocol: z.enum(['v1', 'v2']).optional(),
});

const tunnelRegistered = z.object({
  type: z.literal('TunnelRegistered'),
  request_id: requestId,
  tunnel_id: id,
  name: z.string().max(200),
  protocol: tunnelProtocol,
  label: z.string().max(300),
  public_url: address,
  assigned_port: port.optional(),
  warnings: z.array(textForPeople).max(100).default([]),
  /** Of the policy and the services that the client sent, as the edge has read them: one that brought a policy and is not answered with its hash takes the tunnel back. */
  policy_hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits')
    .optional(),
});

/** Answers a registration (request_id), or ends a living tunnel (tunnel_id alone): the client does not register it again. */
const tunnelError = z.object({
  type: z.literal('TunnelError'),
  request_id: requestId.optional(),
  tunnel_id: id.optional(),
  code,
  message: textForPeople,
  retryable: z.boolean(),
  /** The tunnel of the client's own account that has the name it was refused. A name of another account says nothing of its holder. */
  held_by: z.object({ name: z.string().max(200), client_name: clientName.optional() }).optional(),
});

/** To the first member of a TCP group: the listener is bound. */
const registered = z.object({ type: z.literal('Registered'), tunnel_id: id, assigned_port: port });

const unregisterTunnel = z.object({ type: z.literal('UnregisterTunnel'), request_id: requestId, tunnel_id: id });
const tunnelUnregistered = z.object({ type: z.literal('TunnelUnregistered'), request_id: requestId, tunnel_id: id });

const tunnelHealthy = z.object({ type: z.literal('TunnelHealthy'), tunnel_id: id });
const tunnelUnhealthy = z.object({
  type: z.literal('TunnelUnhealthy'),
  tunnel_id: id,
  reason: textForPeople.default(''),
  consecutive_failures: z.int().min(0),
});

/** The client wants to dial `count` more carriers. */
const requestCarriers = z.object({ type: z.literal('RequestCarriers'), count: carrierCount });
const carrierTokens = z.object({ type: z.literal('CarrierTokens'), tokens: carrierTokensList });

const ping = z.object({ type: z.literal('Ping'), id: z.int() });
const pong = z.object({ type: z.literal('Pong'), id: z.int() });

/** Either side: no new streams from here on; those under way may finish for `drain_secs`. From a client it also says that it ends on purpose. */
const shuttingDown = z.object({ type: z.literal('ShuttingDown'), reason: textForPeople, drain_secs: seconds });

// ---- the UDP path of datagrams (capability `datagram`), peers (capability `p2p`) ----

/** AES-256 keys in base64url without padding. */
const pathKey = z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url');
const sealedPath = z.object({
  id: z.string().regex(/^[0-9a-f]{16}$/, 'must be 16 lower-case hex digits'),
  key_to_edge: pathKey,
  key_to_client: pathKey,
});
export type SealedPath = z.infer<typeof sealedPath>;

/** Edge, after AuthOk and before any TunnelRegistered: fresh ids and keys of this connection. Those of an earlier one are dead. */
const datagramPath = z.object({
  type: z.literal('DatagramPath'),
  /** Two UDP ports of the edge; either takes every packet, and the two together show how a NAT maps a socket. */
  ports: z.tuple([port, port]),
  /** Carries datagrams; its address is where the newest authenticated packet came from. null: datagrams stay on carriers. */
  path: sealedPath.nullable(),
  /** Carries PING and PONG alone, from any socket: how this client looks from outside. null: not offered. */
  observe: sealedPath.nullable(),
});

/** Why a client did not pass a datagram on. */
const clientDropReason = z.enum(['behind', 'path', 'away', 'local', 'too-large']);

const datagramDrop = z.object({
  /** Whose; empty: the client does not know any more. */
  visitor: z.string().max(300),
  /** `in`: from the visitor, and the edge had given it to the client; `out`: from the local service. */
  direction: z.enum(['in', 'out']),
  reason: clientDropReason,
  datagrams: z.int().min(1),
});
export type DatagramDrop = z.infer<typeof datagramDrop>;

/** Client (capability `datagram-drops`): what it dropped of a udp tunnel since the last one. Each datagram is told of once. */
const datagramDrops = z.object({
  type: z.literal('DatagramDrops'),
  tunnel_id: id,
  drops: z.array(datagramDrop).min(1).max(WIRE_LIMITS.DATAGRAM_DROPS_PER_MESSAGE),
});

/** Client: lets a subscriber in. `peer_id`: the one it had in this session before. */
const connectPeer = z.object({
  type: z.literal('ConnectPeer'),
  request_id: requestId,
  p2p_name: p2pName,
  p2p_secret_hash: p2pSecretHash,
  service: p2pService,
  peer_id: id.optional(),
});
const peerConnected = z.object({ type: z.literal('PeerConnected'), request_id: requestId, peer_id: id });

/** Answers a ConnectPeer (request_id), or ends a join (peer_id alone). */
const peerError = z.object({
  type: z.literal('PeerError'),
  request_id: requestId.optional(),
  peer_id: id.optional(),
  code,
  message: textForPeople,
  retryable: z.boolean(),
});

/** The subscriber leaves. */
const disconnectPeer = z.object({ type: z.literal('DisconnectPeer'), peer_id: id });

/** To the publisher. */
const peerJoined = z.object({ type: z.literal('PeerJoined'), tunnel_id: id, peer_id: id, client_addr: clientAddr });
const peerGone = z.object({
  type: z.literal('PeerGone'),
  tunnel_id: id,
  peer_id: id,
  reason: z.enum(['left', 'dismissed', 'revoked', 'lost']),
});

/** Why a peer is on the relay; the empty one while it is direct. */
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

/** How a try to go direct ended. */
const directOutcome = z.enum(['direct', 'udp-blocked', 'random-ports', 'no-answer', 'no-transport']);
export type DirectOutcome = z.infer<typeof directOutcome>;

/** From the publisher, for people who look at the edge: at each change, and now and then while bytes pass. */
const peerReport = z.object({
  type: z.literal('PeerReport'),
  tunnel_id: id,
  peer_id: id,
  path: z.enum(['direct', 'relay']),
  reason: relayReason,
  rtt_ms: z.number().min(0).max(1e9).nullable(),
  /** Since the peer joined, both ways. */
  direct_bytes: z.int().min(0),
  /** A try that has just ended. */
  attempt: directOutcome.optional(),
});

// ---- requests that the edge answered itself (capability `edge-answers`) ----

/**
 * Edge: a visitor got an answer of the edge's own, because the service is not running, a rule turned the visitor away, or the like. At most
 * EDGE_ANSWERS_PER_SECOND of one tunnel; EdgeAnsweredMore counts the rest.
 */
const edgeAnswered = z.object({
  type: z.literal('EdgeAnswered'),
  tunnel_id: id,
  /** As captures name the request. */
  request_id: requestId,
  /** When the request began. */
  at: z.iso.datetime(),
  method: z.string().max(WIRE_LIMITS.EDGE_ANSWERED_METHOD_MAX_CHARS),
  /** With its query, redacted as in captures. A longer path is cut by the sender. */
  path: z.string().max(WIRE_LIMITS.EDGE_ANSWERED_PATH_MAX_CHARS),
  status: z.int().min(100).max(999),
  /** null: no error, such as a redirect by a rule. */
  code: code.nullable(),
  /** The name of the rule that answered, or its number when it has no name, or `of the operator`; null: no rule answered. */
  rule: z.string().max(200).nullable(),
  duration_ms: z.number().min(0).max(1e9),
});

/** Edge: so many more requests of the tunnel were answered in the last second. */
const edgeAnsweredMore = z.object({ type: z.literal('EdgeAnsweredMore'), tunnel_id: id, count: z.int().min(1) });

/** `fatal`: the session ends with this; the client does not come back by itself unless `retryable`. */
const error = z.object({
  type: z.literal('Error'),
  code,
  message: textForPeople,
  retryable: z.boolean().default(false),
  fatal: z.boolean().default(false),
});

export const controlMessage = z.discriminatedUnion('type', [
  auth,
  authOk,
  authError,
  registerTunnel,
  tunnelRegistered,
  tunnelError,
  registered,
  unregisterTunnel,
  tunnelUnregistered,
  tunnelHealthy,
  tunnelUnhealthy,
  requestCarriers,
  carrierTokens,
  ping,
  pong,
  shuttingDown,
  datagramPath,
  datagramDrops,
  connectPeer,
  peerConnected,
  peerError,
  disconnectPeer,
  peerJoined,
  peerGone,
  peerReport,
  edgeAnswered,
  edgeAnsweredMore,
  error,
]);

export type ControlMessage = z.infer<typeof controlMessage>;
export type ControlType = ControlMessage['type'];
export type MessageOf<T extends ControlType> = Extract<ControlMessage, { type: T }>;

/** What a sender writes: fields with defaults may be left out. */
export type ControlMessageInput = z.input<typeof controlMessage>;

export const CONTROL_TYPES: readonly ControlType[] = controlMessage.options.map((option) => option.shape.type.value);
