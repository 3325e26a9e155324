// Types of all tables, as used in queries. The migrations create the tables; a test compares both.
import type { ColumnType, Generated } from 'kysely';
import type {
  AcmeAccountsTable,
  AcmeAuthorityTable,
  AcmeBudgetsTable,
  AcmeChallengesTable,
  CertificatesTable,
} from './certificate-tables.ts';
import type { BigCount, GivenTimestamp, Timestamp } from './column-types.ts';
import type {
  OauthClientsTable,
  OauthCodesTable,
  OauthGrantsTable,
  OauthRefreshTokensTable,
  OauthRequestsTable,
} from './oauth-tables.ts';

export interface PlansTable {
  name: string;
  tunnel_limit: number | null;
  allow_custom_subdomains: boolean;
  monthly_minimum_cents: number;
  price_cents_per_gb: number;
  reserved_limit: number | null;
  domain_limit: number | null;
}

export interface UsersTable {
  id: Generated<string>;
  email: string;
  display_name: string | null;
  password_hash: string | null;
  email_verified_at: Timestamp | null;
  status: Generated<'active' | 'suspended'>;
  auth_method: Generated<string>;
  plan: string;
  epoch: Generated<number>;
  created_at: GivenTimestamp;
  deleted_at: Timestamp | null;
  /** Day (UTC) of the creations counted in `created_count`. */
  created_on: string | null;
  created_count: Generated<number>;
}

export interface RefreshFamiliesTable {
  id: Generated<string>;
  user_id: string;
  user_agent: Generated<string>;
  address: Generated<string>;
  created_at: GivenTimestamp;
  last_used_at: GivenTimestamp;
  revoked_at: Timestamp | null;
  network: Generated<string>;
}

export interface RefreshTokensTable {
  token_hash: string;
  family_id: string;
  created_at: GivenTimestamp;
  expires_at: Timestamp;
  rotated_at: Timestamp | null;
  grace_uses: Generated<number>;
}

export interface MailTokensTable {
  token_hash: string;
  user_id: string;
  kind: 'verify' | 'reset' | 'change';
  created_at: GivenTimestamp;
  expires_at: Timestamp;
  used_at: Timestamp | null;
  new_email: string | null;
  epoch: number | null;
}

export interface InvitesTable {
  token_hash: string;
  /** Recipient of the invitation. Null for the first account's invitation, which is valid for any address and does not expire. */
  email: string | null;
  created_at: GivenTimestamp;
  expires_at: Timestamp | null;
}

export interface AccountDeletionsTable {
  user_id: string;
  begun_at: Timestamp;
  subscription_ended_at: Timestamp | null;
  ended_at: Timestamp | null;
  next_try_at: Timestamp;
  attempts: Generated<number>;
}

export interface MailOutboxTable {
  id: Generated<string>;
  recipient: string;
  subject: string;
  text_body: string;
  html_body: string;
  created_at: GivenTimestamp;
  next_try_at: GivenTimestamp;
  attempts: Generated<number>;
  sent_at: Timestamp | null;
  given_up_at: Timestamp | null;
  user_id: string | null;
}

export interface MailRequestsTable {
  id: Generated<number>;
  email: string;
  kind: 'verify' | 'reset' | 'change';
  at: Timestamp;
  user_id: string | null;
  epoch: number | null;
}

export interface MailQuotasTable {
  recipient_hash: string;
  sent_at: Generated<string>;
  last_at: Timestamp;
}

export interface ApiKeysTable {
  id: Generated<string>;
  user_id: string;
  label: string;
  token_hash: string;
  created_at: GivenTimestamp;
  last_used_at: Timestamp | null;
  status: Generated<'active' | 'revoked'>;
  revoked_at: Timestamp | null;
  unlimited: Generated<boolean>;
  tunnel_count: BigCount;
}

export interface EdgesTable {
  id: Generated<string>;
  name: string;
  credential_hash: string;
  created_at: GivenTimestamp;
  revoked_at: Timestamp | null;
  region_id: string | null;
  region_name: Generated<string>;
  location: Generated<string>;
  api_url: Generated<string>;
  api_secret: Generated<string>;
  version: Generated<string>;
  run_id: string | null;
  last_heartbeat_at: Timestamp | null;
  control: Generated<string>;
  control_tls: Generated<boolean>;
  http_url: Generated<string>;
  tcp_from: number | null;
  tcp_to: number | null;
  udp_from: number | null;
  udp_to: number | null;
}

export interface EdgeJournalsTable {
  edge_id: string;
  journal_id: string;
  last_record: BigCount;
  updated_at: GivenTimestamp;
}

export interface TunnelLogTable {
  id: Generated<string>;
  user_id: string;
  key_id: string | null;
  edge_id: string | null;
  run_id: Generated<string>;
  region_id: string | null;
  tunnel_id: string;
  session_id: Generated<string>;
  name: Generated<string>;
  protocol: string;
  label: Generated<string>;
  /** Public URL of the tunnel. Null if the edge or the client is too old to report the URL. */
  public_url: string | null;
  client_name: string | null;
  registered_at: Timestamp;
  unregistered_at: Timestamp | null;
  presumed_closed: Generated<boolean>;
  request_count: BigCount;
  bytes_proxied: BigCount;
  /** Id in `names` of the served name. Null if the tunnel serves no name owned by an account. */
  name_id: string | null;
  /** Name or port of the tunnel, as kind/region/label. Null if there is no endpoint, or if the endpoint is not known yet. */
  endpoint: string | null;
}

export interface NamesTable {
  id: Generated<string>;
  kind: 'subdomain' | 'tcp' | 'udp' | 'p2p';
  /** Region of a port or a p2p name. Empty for subdomains. */
  region_id: Generated<string>;
  label: string;
  user_id: string;
  state: 'held' | 'reserved' | 'released';
  group_key_hash: string | null;
  created_at: GivenTimestamp;
  last_used_at: Timestamp | null;
  released_at: Timestamp | null;
  /** True if the edge chose the name, for a tunnel that requested no name. */
  assigned: Generated<boolean>;
}

export interface OwnDomainsTable {
  id: Generated<string>;
  user_id: string;
  /** Host name as A-labels, starting with `*.` for a wildcard. */
  name: string;
  wildcard: boolean;
  token: string;
  wants_certificate: Generated<boolean>;
  state: 'pending' | 'verified' | 'failed' | 'lapsed';
  since: Timestamp;
  verified_at: Timestamp | null;
  checked_at: Timestamp | null;
  absent_since: Timestamp | null;
  next_look_at: Timestamp | null;
  last_error: string | null;
  mailed_at: ColumnType<Record<string, number>, string | undefined, string>;
  /** DNS records of the domain found by the last check. */
  found: ColumnType<Record<string, unknown> | null, string | null, string | null>;
  created_at: GivenTimestamp;
}

export interface UsageDailyTable {
  user_id: string;
  /** Day (UTC) as YYYY-MM-DD. Text, because a Date would shift with the process's time zone. */
  day: string;
  tunnels: BigCount;
  requests: BigCount;
  bytes: BigCount;
}

export interface EdgeChangesTable {
  id: Generated<number>;
  at: GivenTimestamp;
  kind: string;
  account_id: string | null;
  key_id: string | null;
  code: string | null;
  message: string | null;
  tunnel_ids: string | null;
  name_kind: string | null;
  name_region: string | null;
  name_label: string | null;
  /** Name of the own domain, for changes of own domains. */
  domain: string | null;
  keeps_tunnels: boolean | null;
  certificate_id: string | null;
}

export interface AuditLogTable {
  id: Generated<number>;
  at: GivenTimestamp;
  actor: string;
  action: string;
  user_id: string | null;
  details: ColumnType<Record<string, unknown>, string | undefined, never>;
}

export interface SigningKeysTable {
  kid: string;
  /** Signing key pair as JWKs. The public key is published; the private key is encrypted with the master key. */
  public_key: ColumnType<Record<string, unknown>, string, never>;
  private_key: string | null;
  created_at: GivenTimestamp;
  retired_at: Timestamp | null;
}

export interface BillingAccountsTable {
  user_id: string;
  customer_id: string | null;
  has_payment_method: Generated<boolean>;
  subscription_id: string | null;
  subscription_status: 'active' | 'past_due' | 'canceled' | null;
  cancels_at_period_end: Generated<boolean>;
  current_period_end: Timestamp | null;
  metered_from: Timestamp | null;
  past_due_since: Timestamp | null;
  past_due_mailed_at: Timestamp | null;
  subscriptions: Generated<number>;
  spend_cap_cents: number | null;
  cap_closed_at: Timestamp | null;
  synced_at: Timestamp | null;
  updated_at: GivenTimestamp;
  past_due_closed_at: Timestamp | null;
  limit_check_at: Timestamp | null;
  processor_ahead_ms: number | null;
  card_brand: string | null;
  card_last4: string | null;
}

export interface CapNoticesTable {
  user_id: string;
  month: string;
  percent: number;
  at: GivenTimestamp;
}

export interface MeteredUsageTable {
  user_id: string;
  /** Month (UTC) of the usage, as YYYY-MM. */
  month: string;
  bytes: BigCount;
  cut_bytes: BigCount;
  cuts: Generated<number>;
}

export interface MeterEventsTable {
  identifier: string;
  user_id: string;
  month: string;
  bytes: number;
  occurred_at: Timestamp;
  created_at: GivenTimestamp;
  next_try_at: GivenTimestamp;
  attempts: Generated<number>;
  claimed_until: Timestamp | null;
  first_tried_at: Timestamp | null;
  sent_at: Timestamp | null;
}

export interface ProcessorEventsTable {
  id: string;
  type: string;
  customer_id: string | null;
  received_at: GivenTimestamp;
  handled_at: Timestamp | null;
}

export interface IdempotencyKeysTable {
  user_id: string;
  key: string;
  operation: string;
  request_hash: string;
  created_at: GivenTimestamp;
  status: number | null;
  body: string | null;
}

export interface SchemaNotesTable {
  migration: string;
  oldest_version: string;
}

export interface Schema {
  plans: PlansTable;
  users: UsersTable;
  refresh_families: RefreshFamiliesTable;
  refresh_tokens: RefreshTokensTable;
  mail_tokens: MailTokensTable;
  invites: InvitesTable;
  account_deletions: AccountDeletionsTable;
  mail_outbox: MailOutboxTable;
  mail_requests: MailRequestsTable;
  mail_quotas: MailQuotasTable;
  api_keys: ApiKeysTable;
  edges: EdgesTable;
  edge_journals: EdgeJournalsTable;
  tunnel_log: TunnelLogTable;
  names: NamesTable;
  own_domains: OwnDomainsTable;
  usage_daily: UsageDailyTable;
  edge_changes: EdgeChangesTable;
  audit_log: AuditLogTable;
  signing_keys: SigningKeysTable;
  billing_accounts: BillingAccountsTable;
  cap_notices: CapNoticesTable;
  metered_usage: MeteredUsageTable;
  meter_events: MeterEventsTable;
  processor_events: ProcessorEventsTable;
  idempotency_keys: IdempotencyKeysTable;
  oauth_clients: OauthClientsTable;
  oauth_requests: OauthRequestsTable;
  oauth_grants: OauthGrantsTable;
  oauth_codes: OauthCodesTable;
  oauth_refresh_tokens: OauthRefreshTokensTable;
  certificates: CertificatesTable;
  acme_accounts: AcmeAccountsTable;
  acme_challenges: AcmeChallengesTable;
  acme_budgets: AcmeBudgetsTable;
  acme_authority: AcmeAuthorityTable;
  schema_notes: SchemaNotesTable;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns true for a valid UUID. Table ids are UUIDs; other texts are never sent to the database, which would reject the query. */
export const isUuid = (text: string): boolean => UUID.test(text);
