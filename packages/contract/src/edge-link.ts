// Schemas of the calls between an edge and the platform, below /internal/edge. Every call has the edge's credential as its bearer token.
import * as z from 'zod';

export const EDGE_LINK_PATH = '/internal/edge';

const id = z.string().min(1).max(100);
const at = z.int().min(0).meta({ description: 'Milliseconds since the epoch.' });
const count = z.int().min(0);
/**
 * Name of the client's computer: up to 64 characters of one or two UTF-16 units. Omitted if the client sent no name, and by older edges.
 */
const clientName = z.string().min(1).max(128).optional();

const port = z.int().min(1).max(65_535);
const portRange = z.tuple([port, port]);
/** Kinds of names that an account can reserve. */
const reservedKind = z.enum(['subdomain', 'tcp', 'udp']);
/**
 * Kinds of names that an account can own. A p2p name, to which keys of every account can connect, is owned only while used and cannot be
 * reserved.
 */
const nameKind = z.enum([...reservedKind.options, 'p2p']);
/** A custom domain in its A-label form (RFC 5890). A wildcard domain begins with `*.`. */
const ownDomainName = z.string().min(1).max(255);
/** Hash of a group key, such as a SHA-256, as stored by the edge. The group key itself is never sent to the platform. */
const groupKeyHash = z.string().min(1).max(200).nullable();
/** Label of a name: a subdomain `NAME`, `a.NAME` or `*.NAME`, a p2p name, or a port as text. */
const nameLabel = z.string().min(1).max(300);

/** Rejection with an error code of the catalogue and its text, which the edge can pass on to the client unchanged. */
export const linkRefusal = z.object({ ok: z.literal(false), code: z.string(), message: z.string() });
export type LinkRefusal = z.infer<typeof linkRefusal>;

// ---- POST /heartbeat: the edge's first call, repeated every few seconds ----

export const heartbeat = z.object({
  /** Random id of the edge process. A new id ends everything that the previous process had open. */
  run_id: id,
  region: z.object({ id: z.string().min(1).max(100), name: z.string().max(200), location: z.string().max(200) }),
  /** URL at which the platform reaches the edge's REST API. Empty if the platform cannot reach the REST API. */
  api_url: z.string().max(2048),
  /** Secret with which the platform authenticates to the edge's REST API. */
  api_secret: z.string().min(16).max(200),
  version: z.string().max(100),
  open_tunnels: count,
  /** Addresses for visitors and clients of the edge. Omitted until the edge's ports are open. */
  reach: z
    .object({ control: z.string().max(300), control_tls: z.boolean(), http_url: z.string().max(2048) })
    .optional(),
  /** Port ranges for tcp and udp tunnels, both ends included. Omitted by older edges. */
  port_ranges: z.object({ tcp: portRange, udp: portRange }).optional(),
});
export type Heartbeat = z.infer<typeof heartbeat>;

export const heartbeatAnswer = z.object({
  edge_id: z.string(),
  /** Number of the platform's latest change. */
  last_change: count,
  /** URL of the platform's pages. Omitted by older platforms. */
  public_url: z.string().max(2048).optional(),
});
export type HeartbeatAnswer = z.infer<typeof heartbeatAnswer>;

// ---- POST /keys/verify ----

export const keyQuestion = z.object({ token_hash: z.string().regex(/^[0-9a-f]{64}$/) });

/** Permissions of an account, sent with every valid key and again after every change. */
export const accountRights = z.object({
  account_id: z.string(),
  plan: z.string(),
  /** Maximum tunnels of the account. Null for no limit. */
  tunnel_limit: count.nullable(),
  allow_custom_subdomains: z.boolean(),
});
export type AccountRights = z.infer<typeof accountRights>;

/**
 * Account details shown by the client to its user. Separate from the permissions, which are part of changes and stored in the database:
 * email addresses are sent but never stored.
 */
export const accountProfile = z.object({
  email: z.string().max(320),
  /** URL of the platform's pages. */
  dashboard_url: z.string().max(2048),
});
export type AccountProfile = z.infer<typeof accountProfile>;

export const keyAnswer = z.union([
  z.object({
    ok: z.literal(true),
    key_id: z.string(),
    unlimited: z.boolean(),
    account: accountRights,
    profile: accountProfile.optional(),
  }),
  linkRefusal,
]);
export type KeyAnswer = z.infer<typeof keyAnswer>;

// ---- POST /tunnels: whether an account can open one more tunnel ----

/** Public endpoint requested by a tunnel, so that the platform can decide which account owns the name or port. */
export const wantedEndpoint = z.object({
  kind: nameKind,
  /**
   * Requested subdomain or port. Always set for subdomains: for an assigned subdomain, the edge proposes a name. For tcp and udp, null if
   * any port is acceptable.
   */
  label: nameLabel.nullable(),
  /** Whether the client requested the label. False if the edge proposed the label. */
  asked: z.boolean(),
  group_key_hash: groupKeyHash,
  /**
   * Whether the tunnel joins a live group of this edge, which has already accepted the group key. The platform then only counts the
   * tunnel and does not check who owns the name.
   */
  joins_group: z.boolean(),
});
export type WantedNameEndpoint = z.infer<typeof wantedEndpoint>;

export const tunnelQuestion = z.object({
  run_id: id,
  tunnel_id: id,
  session_id: id,
  account_id: id,
  key_id: id,
  name: z.string().max(200),
  client_name: clientName,
  protocol: z.enum(['http', 'tcp', 'udp', 'p2p']),
  /** Whether the client requested a subdomain by name. */
  custom_subdomain: z.boolean(),
  /** Public endpoint claimed by the tunnel. Omitted by tunnels without a public endpoint, and by older edges; no name is claimed then. */
  endpoint: wantedEndpoint.optional(),
  /**
   * Custom domain of the tunnel, instead of an endpoint. The platform checks that the domain is verified for the account, together with
   * the tunnel limit.
   */
  domain: ownDomainName.optional(),
  at,
});
export type TunnelQuestion = z.infer<typeof tunnelQuestion>;

/**
 * Response to a tunnel request. An accepted tunnel counts toward the account's limit immediately. If the edge then finds no free endpoint
 * for the tunnel, the edge reports the tunnel as closed and `abandoned`.
 */
export const tunnelAnswer = z.union([z.object({ ok: z.literal(true) }), linkRefusal]);
export type TunnelAnswer = z.infer<typeof tunnelAnswer>;

// ---- POST /records: events in the order of the edge's journal, each stored once ----

export const journalRecord = z.discriminatedUnion('kind', [
  /** Record of a tunnel that has received its endpoint, including tunnels opened while the platform was unreachable. */
  z.object({
    kind: z.literal('opened'),
    ...tunnelQuestion.omit({ custom_subdomain: true }).shape,
    label: z.string().max(300),
    public_url: z.string().max(2048).optional(),
  }),
  z.object({ kind: z.literal('usage'), tunnel_id: id, requests: count, bytes: count, at }),
  z.object({ kind: z.literal('closed'), tunnel_id: id, at, abandoned: z.boolean().default(false) }),
]);
export type JournalRecord = z.infer<typeof journalRecord>;

/** Consecutive records of one journal, numbered `first`, `first` + 1, and so on. */
export const recordBatch = z.object({
  run_id: id,
  journal_id: id,
  first: z.int().min(1),
  records: z.array(journalRecord).min(1).max(1000),
});
export type RecordBatch = z.infer<typeof recordBatch>;

/** Confirms that all records up to `last_record` are stored. A batch that skips records is rejected with status 409 and the same body. */
export const recordBatchAnswer = z.object({ last_record: count });
export type RecordBatchAnswer = z.infer<typeof recordBatchAnswer>;

// ---- POST /names/check: whether the operator's tunnel can have a name; such tunnels are not counted and take no names from accounts ----

export const nameQuestion = z.object({ kind: nameKind, label: nameLabel, group_key_hash: groupKeyHash });
export type NameQuestion = z.infer<typeof nameQuestion>;

export const nameAnswer = z.object({ free: z.boolean() });
export type NameAnswer = z.infer<typeof nameAnswer>;

// ---- GET /names?domains=1: all reserved names, and all custom domains that are verified or have lapsed, as one JSON object per line. The
// first line is `at`, the last `end`; a snapshot without `end` is incomplete. Older edges omit `domains` and get names only ----

export const nameSnapshotStart = z.object({
  /** Number of the latest change included in the snapshot. Later changes arrive in the change stream. */
  at: count,
});

export const reservedName = z.object({
  kind: reservedKind,
  label: nameLabel,
  account_id: z.string(),
  group_key_hash: groupKeyHash,
});
export type ReservedName = z.infer<typeof reservedName>;

/** A custom domain that is verified by DNS for an account. */
export const verifiedDomain = z.object({ domain: ownDomainName, account_id: z.string() });
export type VerifiedDomain = z.infer<typeof verifiedDomain>;

/**
 * A custom domain that no account owns any more because its verification has lapsed. Open tunnels of the last owner stay open. A domain
 * in neither list has been removed.
 */
export const lapsedDomain = z.object({ lapsed_domain: ownDomainName, account_id: z.string() });
export type LapsedDomain = z.infer<typeof lapsedDomain>;

export const nameSnapshotEnd = z.object({ end: z.literal(true) });

export const nameSnapshotLine = z.union([
  reservedName,
  verifiedDomain,
  lapsedDomain,
  nameSnapshotStart,
  nameSnapshotEnd,
]);
export type NameSnapshotLine = z.infer<typeof nameSnapshotLine>;

// ---- GET /certificates: all stored certificates, one JSON object per line, first `at`, last `end`. GET /certificates/ID: one of them ----

/** A certificate for the edges. Over an unencrypted link, the platform sends no certificates and responds with 403 `EDGE_LINK_IN_CLEAR`. */
export const edgeCertificate = z.object({
  id,
  names: z.array(z.string().min(1).max(255)).min(1).max(100),
  /** Whether the certificate is for the operator's own names. Metrics show the operator's names, but not the names of customers. */
  is_operators: z.boolean(),
  state: z.enum(['none', 'ordering', 'valid', 'renewing', 'failing']),
  issuer: z.string().nullable(),
  not_before: at.nullable(),
  not_after: at.nullable(),
  renew_at: at.nullable(),
  last_error: z.string().nullable(),
  /** Certificate chain in PEM, the leaf certificate first, and the private key. Null until a certificate has been issued. */
  pair: z.object({ chain: z.string().max(100_000), key: z.string().max(20_000) }).nullable(),
});
export type EdgeCertificate = z.infer<typeof edgeCertificate>;

export const certificateSnapshotLine = z.union([edgeCertificate, nameSnapshotStart, nameSnapshotEnd]);
export type CertificateSnapshotLine = z.infer<typeof certificateSnapshotLine>;

// ---- POST /challenges: looks up a pending ACME challenge by the token (http-01), the name (tls-alpn-01), or the name of either type ----

export const challengeQuestion = z.union([
  z.object({ token: z.string().min(1).max(200) }),
  z.object({ tls_name: z.string().min(1).max(255) }),
  z.object({ name: z.string().min(1).max(255) }),
]);
export type ChallengeQuestion = z.infer<typeof challengeQuestion>;

/** The pending ACME challenge, with `key_authorization` as defined in RFC 8555. Null if the challenge is unknown. */
export const challengeReply = z.object({
  challenge: z
    .object({
      type: z.enum(['http-01', 'tls-alpn-01']),
      name: z.string(),
      token: z.string(),
      key_authorization: z.string(),
    })
    .nullable(),
});
export type ChallengeReply = z.infer<typeof challengeReply>;

// ---- GET /changes?since=N: one JSON object per line, as long as the edge stays connected ----

export const edgeChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('key-revoked'), id: count, key_id: z.string(), account_id: z.string() }),
  /** Ends all sessions of an account with this code and text, because the account is suspended, over its spend cap or past due. */
  z.object({
    kind: z.literal('account-closed'),
    id: count,
    account_id: z.string(),
    code: z.string(),
    message: z.string(),
  }),
  /**
   * Closes these tunnels in this order, because the account's new plan allows fewer tunnels. Other tunnels of the account stay open.
   * Edges that do not know this change skip it.
   */
  z.object({
    kind: z.literal('tunnels-closed'),
    id: count,
    account_id: z.string(),
    tunnel_ids: z.array(z.string()),
    code: z.string(),
    message: z.string(),
  }),
  z.object({ kind: z.literal('account-changed'), id: count, account: accountRights }),
  /** Reports that a name has been reserved or, if `account_id` is null, released. Ports are reported only to the edges of their region. */
  z.object({
    kind: z.literal('name-changed'),
    id: count,
    name: z.object({
      kind: reservedKind,
      label: nameLabel,
      account_id: z.string().nullable(),
      group_key_hash: groupKeyHash,
    }),
  }),
  /**
   * Reports that a custom domain has been verified for an account or, if `account_id` is null, has lost its owner. Tunnels of other
   * accounts at the domain are closed.
   */
  z.object({
    kind: z.literal('domain-changed'),
    id: count,
    domain: ownDomainName,
    account_id: z.string().nullable(),
    /**
     * Whether open tunnels at a domain without an owner stay open. True if the domain has lapsed; false if the domain was removed or
     * moved to a different account.
     */
    keeps_tunnels: z.boolean(),
  }),
  /**
   * Reports that a certificate was issued or renewed, failed, or was deleted. GET /certificates/ID returns the new state, or 404 if the
   * certificate was deleted.
   */
  z.object({ kind: z.literal('certificate-changed'), id: count, certificate_id: z.string() }),
  /**
   * Tells the edge that changes since the requested number are no longer stored, so the edge's knowledge of keys and accounts may be
   * wrong. The edge drops its caches, verifies the key of every live session again, and fetches the snapshot of names again.
   */
  z.object({ kind: z.literal('forget'), id: count }),
  /** Keeps the connection alive while there are no changes. `id` is the number of the latest change. */
  z.object({ kind: z.literal('alive'), id: count }),
]);
export type EdgeChange = z.infer<typeof edgeChange>;

/**
 * Header of the platform's calls to an edge that names the account for which the platform calls. The bearer token authenticates the
 * platform.
 */
export const ACCOUNT_HEADER = 'x-tunnel-account';
