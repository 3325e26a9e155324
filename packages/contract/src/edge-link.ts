// What an edge and the platform say to each other: the calls under /internal/edge, each with the edge's credential as bearer.
import * as z from 'zod';

export const EDGE_LINK_PATH = '/internal/edge';

const id = z.string().min(1).max(100);
const at = z.int().min(0).meta({ description: 'Milliseconds since the epoch.' });
const count = z.int().min(0);
/** What the client calls its computer: 64 characters of one or two units. Absent: it did not say, or the edge is of before. */
const clientName = z.string().min(1).max(128).optional();

const port = z.int().min(1).max(65_535);
const portRange = z.tuple([port, port]);
/** Kinds of names that an account can reserve. */
const reservedKind = z.enum(['subdomain', 'tcp', 'udp']);
/** Kinds of names that an account can own. It owns a p2p name, one that keys of every account can connect to, by use only. */
const nameKind = z.enum([...reservedKind.options, 'p2p']);
/** An own domain in its A-label form, with its `*.` if it is a wildcard. */
const ownDomainName = z.string().min(1).max(255);
/** SHA-256 or the like, as the edge keeps it of a group; the key itself never comes here. */
const groupKeyHash = z.string().min(1).max(200).nullable();
/** A name, `a.NAME`, `*.NAME`, a p2p name, or a port as text. */
const nameLabel = z.string().min(1).max(300);

/** Ready to be said to whoever asked: a code of the catalogue and its text. */
export const linkRefusal = z.object({ ok: z.literal(false), code: z.string(), message: z.string() });
export type LinkRefusal = z.infer<typeof linkRefusal>;

// ---- POST /heartbeat: every few seconds, and first of all ----

export const heartbeat = z.object({
  /** Random, of this run of the process. A new one ends what the last run had open. */
  run_id: id,
  region: z.object({ id: z.string().min(1).max(100), name: z.string().max(200), location: z.string().max(200) }),
  /** Where the platform reaches the edge's REST; empty: not at all. */
  api_url: z.string().max(2048),
  /** How the platform shows itself there. */
  api_secret: z.string().min(16).max(200),
  version: z.string().max(100),
  open_tunnels: count,
  /** How people and their clients come to it; absent until its ports are open. */
  reach: z
    .object({ control: z.string().max(300), control_tls: z.boolean(), http_url: z.string().max(2048) })
    .optional(),
  /** Which ports it gives out, both ends included; absent: an edge of before. */
  port_ranges: z.object({ tcp: portRange, udp: portRange }).optional(),
});
export type Heartbeat = z.infer<typeof heartbeat>;

export const heartbeatAnswer = z.object({
  edge_id: z.string(),
  /** The latest change there is. */
  last_change: count,
  /** Where people reach the platform's pages; absent: a platform of before. */
  public_url: z.string().max(2048).optional(),
});
export type HeartbeatAnswer = z.infer<typeof heartbeatAnswer>;

// ---- POST /keys/verify ----

export const keyQuestion = z.object({ token_hash: z.string().regex(/^[0-9a-f]{64}$/) });

/** What an account may do; sent with every good key, and again when it changes. */
export const accountRights = z.object({
  account_id: z.string(),
  plan: z.string(),
  /** null: no limit. */
  tunnel_limit: count.nullable(),
  allow_custom_subdomains: z.boolean(),
});
export type AccountRights = z.infer<typeof accountRights>;

/** What a client shows its owner. Apart from the rights, which changes carry and the database keeps: an address is told and never stored. */
export const accountProfile = z.object({
  email: z.string().max(320),
  /** Where the pages of the platform are. */
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

// ---- POST /tunnels: may this account open one more? ----

/** Where visitors would reach it, so that the platform can say whose that is. */
export const wantedEndpoint = z.object({
  kind: nameKind,
  /** Of a subdomain always: for an assigned one the edge proposes a name. tcp, udp: null when any port will do. */
  label: nameLabel.nullable(),
  /** By the client, not by the edge. */
  asked: z.boolean(),
  group_key_hash: groupKeyHash,
  /** A living group at this edge let it in by its key: it is counted, and nothing is decided about the name. */
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
  /** A subdomain was asked for by name. */
  custom_subdomain: z.boolean(),
  /** Absent: nothing is claimed; an edge of before, or a tunnel without a public endpoint. */
  endpoint: wantedEndpoint.optional(),
  /** An own domain in the place of an endpoint: whether it is verified for the account is decided with the count. */
  domain: ownDomainName.optional(),
  at,
});
export type TunnelQuestion = z.infer<typeof tunnelQuestion>;

/** Counted from this answer on; a tunnel that finds no place is told of as closed and `abandoned`. */
export const tunnelAnswer = z.union([z.object({ ok: z.literal(true) }), linkRefusal]);
export type TunnelAnswer = z.infer<typeof tunnelAnswer>;

// ---- POST /records: what happened, in the order of the edge's journal, stored once ----

export const journalRecord = z.discriminatedUnion('kind', [
  /** It has its place. Also for one that was opened while the platform was away. */
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

/** Records numbered first, first + 1, … of one journal. */
export const recordBatch = z.object({
  run_id: id,
  journal_id: id,
  first: z.int().min(1),
  records: z.array(journalRecord).min(1).max(1000),
});
export type RecordBatch = z.infer<typeof recordBatch>;

/** Everything up to here is stored. A batch that begins later than the next one is refused with 409 and this. */
export const recordBatchAnswer = z.object({ last_record: count });
export type RecordBatchAnswer = z.infer<typeof recordBatchAnswer>;

// ---- POST /names/check: may the operator's tunnel have it? Those are not counted, and take nothing that an account has ----

export const nameQuestion = z.object({ kind: nameKind, label: nameLabel, group_key_hash: groupKeyHash });
export type NameQuestion = z.infer<typeof nameQuestion>;

export const nameAnswer = z.object({ free: z.boolean() });
export type NameAnswer = z.infer<typeof nameAnswer>;

// ---- GET /names?domains=1: every reserved name, and own domain that is verified or has lapsed, one JSON object a line: first `at`, last `end`. Without the last it is not
// whole. An edge of before does not ask for domains, and is told of none ----

export const nameSnapshotStart = z.object({
  /** The latest change that it knows of: those after it are the stream's. */
  at: count,
});

export const reservedName = z.object({
  kind: reservedKind,
  label: nameLabel,
  account_id: z.string(),
  group_key_hash: groupKeyHash,
});
export type ReservedName = z.infer<typeof reservedName>;

/** An own domain that DNS has proven to be the account's. */
export const verifiedDomain = z.object({ domain: ownDomainName, account_id: z.string() });
export type VerifiedDomain = z.infer<typeof verifiedDomain>;

/** One that nobody has any more: tunnels of the account that had it last stay. One that is in neither list was removed. */
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

// ---- GET /certificates: every certificate that is kept, one JSON object a line: first `at`, last `end`. GET /certificates/ID: one of them ----

/** One that edges show. Over a link that others could read none is told: 403 EDGE_LINK_IN_CLEAR. */
export const edgeCertificate = z.object({
  id,
  names: z.array(z.string().min(1).max(255)).min(1).max(100),
  /** Of the operator's own names: told by name in metrics; others are tenants'. */
  is_operators: z.boolean(),
  state: z.enum(['none', 'ordering', 'valid', 'renewing', 'failing']),
  issuer: z.string().nullable(),
  not_before: at.nullable(),
  not_after: at.nullable(),
  renew_at: at.nullable(),
  last_error: z.string().nullable(),
  /** PEM, the leaf first, and the key of it; null: nothing was issued yet. */
  pair: z.object({ chain: z.string().max(100_000), key: z.string().max(20_000) }).nullable(),
});
export type EdgeCertificate = z.infer<typeof edgeCertificate>;

export const certificateSnapshotLine = z.union([edgeCertificate, nameSnapshotStart, nameSnapshotEnd]);
export type CertificateSnapshotLine = z.infer<typeof certificateSnapshotLine>;

// ---- POST /challenges: is this a challenge of ours? By the token of http-01, the name of tls-alpn-01, or the name of either ----

export const challengeQuestion = z.union([
  z.object({ token: z.string().min(1).max(200) }),
  z.object({ tls_name: z.string().min(1).max(255) }),
  z.object({ name: z.string().min(1).max(255) }),
]);
export type ChallengeQuestion = z.infer<typeof challengeQuestion>;

/** `key_authorization` as RFC 8555 has it; null: nobody waits for it. */
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

// ---- GET /changes?since=N: one JSON object a line, for as long as the edge listens ----

export const edgeChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('key-revoked'), id: count, key_id: z.string(), account_id: z.string() }),
  /** All its sessions end with this code and text: suspended, over its cap, past due. */
  z.object({
    kind: z.literal('account-closed'),
    id: count,
    account_id: z.string(),
    code: z.string(),
    message: z.string(),
  }),
  /** These tunnels end, in this order, and the account's others stay: its plan allows less than before. An edge that does not know it passes it over. */
  z.object({
    kind: z.literal('tunnels-closed'),
    id: count,
    account_id: z.string(),
    tunnel_ids: z.array(z.string()),
    code: z.string(),
    message: z.string(),
  }),
  z.object({ kind: z.literal('account-changed'), id: count, account: accountRights }),
  /** A name was reserved, or is not any more (`account_id` null). Ports come to the edges of their region alone. */
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
  /** It was verified for this account, or is nobody's any more (`account_id` null): tunnels of others on it are closed. */
  z.object({
    kind: z.literal('domain-changed'),
    id: count,
    domain: ownDomainName,
    account_id: z.string().nullable(),
    /** Whether tunnels that live on it stay where nobody has it: it has lapsed, and was neither removed nor moved. */
    keeps_tunnels: z.boolean(),
  }),
  /** It was issued, renewed, failed or forgotten: GET /certificates/ID says which; 404: it is gone. */
  z.object({ kind: z.literal('certificate-changed'), id: count, certificate_id: z.string() }),
  /**
   * Changes since the number that was asked for are no longer kept: what the edge knows of keys and accounts may be wrong.
   * It drops its caches, asks again for the key of every live session, and takes the snapshot of names again.
   */
  z.object({ kind: z.literal('forget'), id: count }),
  /** Nothing happened; the line lives. `id`: the latest change. */
  z.object({ kind: z.literal('alive'), id: count }),
]);
export type EdgeChange = z.infer<typeof edgeChange>;

/** The bearer of the platform's calls to an edge names the account on whose behalf it asks. */
export const ACCOUNT_HEADER = 'x-tunnel-account';
