// Schema of server.toml, and the type of the loaded configuration.

import { isIP } from 'node:net';
import { LABEL } from '@tunnel/rules/names';
import { parseOtlpHeaders } from '@tunnel/runtime';
import { filledText, flag, listenPort, oneOf, seconds, table, url, wholeNumber } from '@tunnel/tunnel-spec/values';
import * as z from 'zod';
import {
  addressList,
  baseUrlOrNone,
  type DeepReadonly,
  hasIntendedHost,
  plainUrl,
  portRange,
  printableName,
  secretText,
  secretUrl,
  section,
  serviceUrl,
  share,
  text,
  twoPortsOrNone,
} from '../layers/values.ts';

// Tables of the edge: [server] [region] [auth] [names] [tls] [acme] [dns] [limits] [capture] [load_balancing] [udp] [p2p] [policy].

export const DEFAULT_DATA_DIR = './data';

const DAY_SECS = 86_400;
const MOST_DAYS = 100_000;
const MOST_HOURS = 24 * MOST_DAYS;
const HOUR_SECS = 3600;
const MOST_CONNECTIONS = 1_000_000;
const MOST_UNCONFIRMED_BYTES = 1_000_000_000;

const DOMAIN = 'a host name such as "example.com"';
const domain = z
  .string({ error: DOMAIN })
  .regex(new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`, 'i'), { error: DOMAIN })
  // Host names are compared in lower case.
  .toLowerCase();

const serverSchema = section({
  host: filledText().default('127.0.0.1'),
  api_host: text().default(''),
  metrics_host: filledText().default('127.0.0.1'),
  domain: domain.default('localhost'),
  http_port: listenPort().default(8000),
  https_port: listenPort().default(8443),
  /** Ports in public URLs, if a container or a load balancer publishes the ports under other numbers. 0: the ports themselves. */
  public_http_port: listenPort().default(0),
  public_https_port: listenPort().default(0),
  plain_http: oneOf(['redirect', 'proxy']).default('redirect'),
  control_port: listenPort().default(4040),
  control_on_public: flag().default(true),
  api_port: listenPort().default(4041),
  metrics_port: listenPort().default(9090),
  /** @limit operator: Shutdown, time for connections to finish | remaining connections are closed */
  drain_secs: z
    .number({ error: `a number of seconds from 0 to ${DAY_SECS}` })
    .min(0, { error: `a number of seconds from 0 to ${DAY_SECS}` })
    .max(DAY_SECS, { error: `a number of seconds from 0 to ${DAY_SECS}` })
    .default(30),
  /** @limit visitors: HTTP request head, time until complete | 408 `HTTP_HEAD_TIMEOUT` */
  head_timeout_secs: seconds(HOUR_SECS).default(15),
  /** @limit visitors: HTTP response, time to first byte from the local service | 504 `LOCAL_TIMEOUT` */
  first_byte_timeout_secs: seconds(DAY_SECS).default(60),
  trusted_proxies: addressList().default([]),
  platform_url: url({ orEmpty: true }).default(''),
  platform_credential_file: text().default(''),
  api_url: url({ orEmpty: true }).default(''),
  allow_insecure_link: flag().default(false),
});

const regionSchema = section({
  id: printableName().default('local'),
  name: printableName().default('Local'),
  location: text().default(''),
});

const SHA256_HEX = '64 lower-case hex digits of a SHA-256';

const RESERVED = 'names such as "shop" or "*.shop", and ports such as "tcp/20042"';

/** List of reserved names and ports. An entry is a whole subdomain, a wildcard below a subdomain, or a port with its transport. */
const reservedNames = () =>
  z
    .array(
      z
        .string({ error: RESERVED })
        .toLowerCase()
        .regex(new RegExp(`^(?:(?:\\*\\.)?${LABEL}|(?:tcp|udp)/[1-9]\\d{0,4})$`), { error: RESERVED }),
      { error: `a list of ${RESERVED}` },
    )
    .default([]);

const OWN_DOMAIN = 'host names such as "shop.example.com" or "*.shop.example.com"';

/** List of an account's custom domains. The operator vouches for the domains, so the server requires no proof of ownership. */
const ownDomains = () =>
  z
    .array(
      z
        .string({ error: OWN_DOMAIN })
        .toLowerCase()
        .regex(new RegExp(`^(?=.{1,253}$)(?:\\*\\.)?${LABEL}(?:\\.${LABEL})+$`), { error: OWN_DOMAIN }),
      { error: `a list of ${OWN_DOMAIN}` },
    )
    .default([]);

const authSchema = section({
  admin_token: secretText().prefault(''),
  keys: z
    .array(
      table({
        account: printableName(),
        sha256: z.string({ error: SHA256_HEX }).regex(/^[0-9a-f]{64}$/, { error: SHA256_HEX }),
        reserved: reservedNames(),
        domains: ownDomains(),
      }),
      { error: 'a list of tables [[auth.keys]]' },
    )
    .default([]),
});

/** How long a subdomain stays with its account after its last use, and after its release. 0 days: not at all. */
const namesSchema = section({
  /** @limit tunnels: Chosen subdomain, days held for the account after the last use | other accounts can take the name */
  hold_days: wholeNumber(0, MOST_DAYS).default(30),
  /** @limit tunnels: Assigned subdomain, hours held for the account after the last use | other accounts can take the name */
  assigned_hold_hours: wholeNumber(1, MOST_HOURS).default(24),
  /** @limit tunnels: Released name, days reserved for the previous account | other accounts can take the name */
  grace_days: wholeNumber(0, MOST_DAYS).default(7),
});

const CHALLENGES = 'a list of "tls-alpn-01" and "http-01", the preferred first';
const RESOLVERS = 'a list of addresses such as "9.9.9.9", "127.0.0.1:5353" or "[2620:fe::fe]:53"';

/** Whether a text is the IP address of a DNS resolver, with or without a port. */
const isResolver = (given: string): boolean => {
  if (isIP(given) !== 0) return true;
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(given) ?? [];
  const isAddress = bracketed === undefined ? isIP(plain ?? '') === 4 : isIP(bracketed) === 6;
  return isAddress && Number(port) >= 1 && Number(port) <= 65_535;
};

const tlsSchema = section({
  cert_path: text().default(''),
  key_path: text().default(''),
  local_ca: flag().default(false),
});

/** Settings for automatic certificates by ACME (RFC 8555). `enabled` accepts the terms of the certificate authority. */
const acmeSchema = section({
  enabled: flag().default(false),
  email: text().default(''),
  directory: url({ orEmpty: false }).default('https://acme-v02.api.letsencrypt.org/directory'),
  /** Path of PEM certificates for verifying the TLS connection to a private ACME directory. */
  ca_file: text().default(''),
  eab_kid: text().default(''),
  eab_hmac_key: secretText().prefault(''),
  profile: text().default(''),
  /** Enabled ACME challenges, the preferred challenge first. */
  challenges: z
    .array(z.enum(['tls-alpn-01', 'http-01'], { error: CHALLENGES }), { error: CHALLENGES })
    .min(1, { error: CHALLENGES })
    .default(['tls-alpn-01', 'http-01']),
  /** How dns-01 challenges are answered, which wildcard certificates need: `[acme] dns`. */
  dns: oneOf(['none', 'builtin', 'exec']).default('none'),
  dns_exec: text().default(''),
  /** Path of the key that encrypts stored private keys. If empty, <data_dir>/certificate-key, generated once. */
  storage_key_file: text().default(''),
});

/**
 * DNS settings. `resolvers` verify domain proofs and challenges; if empty, the system's resolvers are used. `host` and `port` are the
 * address of the built-in DNS responder.
 */
const dnsSchema = section({
  resolvers: z
    .array(z.string({ error: RESOLVERS }).refine(isResolver, { error: RESOLVERS }), { error: RESOLVERS })
    .default([]),
  host: text().default(''),
  port: listenPort().default(53),
});

const limitsSchema = section({
  /** @limit tunnels: Ports for tcp tunnels | `TUNNEL_PORTS_EXHAUSTED` when every port is taken */
  tcp_port_range: portRange().default([20_000, 20_099]),
  /** @limit tunnels: Ports for udp tunnels | `TUNNEL_PORTS_EXHAUSTED` when every port is taken */
  udp_port_range: portRange().default([20_100, 20_199]),
  /** @limit tunnels: Tunnels per client | `TUNNEL_LIMIT` */
  tunnels_per_session: wholeNumber(1, 100_000).default(100),
  /** @limit visitors: Open connections per tunnel | HTTP visitors get 503 `CONNECTIONS_PER_TUNNEL`; other connections are closed */
  connections_per_tunnel: wholeNumber(1, MOST_CONNECTIONS).default(10_000),
  /** @limit visitors: Open connections per network (an IPv4 address or an IPv6 /64) | HTTP visitors get 429 `CONNECTIONS_PER_ADDRESS`; other connections are closed */
  connections_per_address: wholeNumber(1, MOST_CONNECTIONS).default(10_000),
  /**
   * Maximum open connections of the process. 0 derives the limit from the descriptor limit of the process.
   * @limit visitors: Open connections of the server; 0 derives the limit from the open-file limit of the process | HTTP visitors get 503 `CONNECTIONS_FULL`; other connections are closed
   */
  connections_total: wholeNumber(0, MOST_CONNECTIONS).default(0),
  /** @limit tunnels: Wrong keys per network and minute | `AUTH_TOO_MANY_FAILURES` until the minute has passed */
  auth_failures_per_minute: wholeNumber(1, MOST_CONNECTIONS).default(60),
  /** @limit operator: Share of connections, ports, flows and captures per account | further connections of the account are rejected */
  account_share: share(0.01).default(0.25),
  /**
   * Maximum TLS handshakes per second and network while the server is busy. 0 disables the limit.
   * @limit visitors: TLS handshakes per second and network while the server is busy; 0 turns the limit off | the connection is reset
   */
  handshakes_per_second: wholeNumber(0, MOST_CONNECTIONS).default(50),
});

const captureSchema = section({ enabled: flag().default(true), bodies: flag().default(true) });

const loadBalancingSchema = section({
  enabled: flag().default(false),
  alert_webhook_url: url({ orEmpty: true, concealed: true }).default(''),
  alert_allow_private: oneOf(['auto', true, false]).default('auto'),
  alert_secret: secretText().prefault(''),
});

const udpSchema = section({
  enabled: flag().default(true),
  path: oneOf(['auto', 'carrier']).default('auto'),
  ports: twoPortsOrNone().default([]),
  /** @limit visitors: UDP flow, idle time | the flow ends; the next datagram starts a new flow */
  idle_secs: wholeNumber(5, HOUR_SECS).default(60),
  /**
   * Idle time of a flow with a single request and reply. A tunnel with a shorter `idle_secs` uses the shorter time.
   * @limit visitors: UDP flow with a single request and reply, idle time | the flow ends
   */
  answered_idle_secs: wholeNumber(1, HOUR_SECS).default(10),
  /** @limit visitors: UDP flows started per second from a /24 (IPv6 /56), per tunnel; 0 turns the limit off | the datagram is dropped (reason `rate`) */
  new_flows_per_second: wholeNumber(0, MOST_CONNECTIONS).default(100),
  /** @limit visitors: UDP reply bytes until the visitor sends a second datagram, as a guard against forged addresses | the reply is dropped (reason `unconfirmed`) */
  unconfirmed_reply_bytes: wholeNumber(0, MOST_UNCONFIRMED_BYTES).default(8192),
});

const p2pSchema = section({
  enabled: flag().default(true),
  direct: flag().default(true),
  /** @limit tunnels: Peers per p2p tunnel | `P2P_PEER_LIMIT` */
  peers_per_tunnel: wholeNumber(1, MOST_CONNECTIONS).default(100),
});

const LOGIN_NAME = '1 to 32 of a-z, 0-9, - and _';

const policySchema = section({
  file: text().default(''),
  login_secret_file: text().default(''),
  allow_private: oneOf(['auto', true, false]).default('auto'),
  login: z
    .array(
      table({
        name: z.string({ error: LOGIN_NAME }).regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, { error: LOGIN_NAME }),
        issuer: url({ orEmpty: false, maxCharacters: 2000 }),
        client_id: filledText(),
        /** File with the client secret. Empty for a public OAuth client, which has no secret. */
        client_secret_file: text().default(''),
      }),
      { error: 'a list of tables [[policy.login]]' },
    )
    .default([]),
});

// [backup]: backups of the embedded database and of the data directory.

const MOST_BACKUPS = 10_000;
/** Smallest limit on the unarchived log: two segments of 16 MiB, because a single one is usually waiting. */
const LEAST_WAL_BYTES = 32 * 1024 * 1024;
const MOST_WAL_BYTES = 2 ** 50;

const backupSchema = section({
  /** Folder of the backups. Empty: no backups. */
  dir: text().default(''),
  every_hours: wholeNumber(0, MOST_HOURS).default(24),
  /** @limit operator: Backups kept | the oldest backup is deleted, and the log that only that backup needs */
  keep: wholeNumber(1, MOST_BACKUPS).default(7),
  /** Whether the write-ahead log is archived, so that any moment can be restored. */
  wal: flag().default(true),
  /** @limit operator: Log of the embedded database that waits for its archive, in bytes | archiving is switched off until the backlog is archived, then a new backup begins */
  wal_max_bytes: wholeNumber(LEAST_WAL_BYTES, MOST_WAL_BYTES).default(4 * 1024 ** 3),
  /** Whether backups contain the key files. Without them, a backup is useless unless the keys are stored elsewhere. */
  keys: flag().default(true),
});

// [telemetry]: traces of requests, sent to a collector.

const HEADER_LIST =
  'a list such as "name=value,name=value", with header names, values of visible characters, and %2C for a comma';

const telemetrySchema = section({
  /** URL of an OpenTelemetry collector; traces go to its path /v1/traces. Empty: no traces. */
  otlp_endpoint: baseUrlOrNone().default(''),
  /** Headers of the requests to the collector, with its key for example. */
  otlp_headers: secretText(HEADER_LIST, (list) => parseOtlpHeaders(list) !== null).prefault(''),
  /** Share of requests that leave a trace. */
  sample_ratio: share(0).default(0.01),
  /** Whether the flag of a visitor's traceparent header decides instead of the ratio. */
  trust_traceparent: flag().default(false),
  service_name: printableName().default('tunnel'),
});

// [platform] and its tables: API, mail, billing, limits and plans.

const MOST_CENTS = 1_000_000_000;

/** Plans that exist without being configured. Plans in server.toml are merged over the built-in plans. */
export const BUILT_IN_PLANS = {
  free: {
    /** @limit accounts: Tunnels in plan `free` | `TUNNEL_PLAN_LIMIT` */
    tunnel_limit: 3,
    /** @limit accounts: Reserved names and ports in plan `free` | 403 `RESERVATION_LIMIT` */
    reserved_limit: 3,
    /** @limit accounts: Custom domains in plan `free` | 403 `DOMAIN_LIMIT` */
    domain_limit: 3,
    allow_custom_subdomains: true,
    monthly_minimum_cents: 0,
  },
  payg: {
    /** @limit accounts: Reserved names and ports in plan `payg` | 403 `RESERVATION_LIMIT` */
    reserved_limit: 100,
    /** @limit accounts: Custom domains in plan `payg` | 403 `DOMAIN_LIMIT` */
    domain_limit: 100,
    allow_custom_subdomains: true,
    monthly_minimum_cents: 300,
    price_cents_per_gb: 10,
  },
} as const;

const plan = table({
  /** Maximum open tunnels per account in this plan. Unlimited if not set. */
  tunnel_limit: wholeNumber(0, 1_000_000).optional(),
  /** Maximum reserved names and ports per account, counted together. Unlimited if not set. */
  reserved_limit: wholeNumber(0, 1_000_000).optional(),
  /** Maximum custom domains per account in this plan. Unlimited if not set. */
  domain_limit: wholeNumber(0, 1_000_000).optional(),
  allow_custom_subdomains: flag().default(true),
  monthly_minimum_cents: wholeNumber(0, MOST_CENTS).default(0),
  price_cents_per_gb: wholeNumber(0, MOST_CENTS).default(0),
});

const PLAN_NAME = 'a plan name of a-z, 0-9, - and _';
const planName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,49}$/, { error: PLAN_NAME });

const platformSchema = section({
  host: filledText().default('127.0.0.1'),
  port: listenPort().default(8080),
  /** Whether `port` uses HTTPS, with the certificate for the host of public_url. For a platform without an edge. */
  tls: flag().default(false),
  public_url: plainUrl().default('http://localhost:8080'),
  trusted_proxies: addressList().default([]),
  secret_key_file: text().default(''),
  /** Folder with the files of a release, which /install and /downloads/ hand out. Empty: the server has no files. */
  downloads_dir: text().default(''),
  /**
   * Who can create an account: "open" allows anyone, "invite" allows people invited by the operator, "closed" allows no sign-ups.
   * Default: "open" on a loopback configuration, otherwise "invite".
   */
  sign_up: oneOf(['open', 'invite', 'closed']).optional(),
  mail: section({
    transport: oneOf(['file', 'smtp']).default('file'),
    smtp_url: secretUrl(
      /^smtps?:\/\//i,
      'smtp://user:password@host:587, with % @ / ? # in user and password written as %25 %40 %2F %3F %23',
      hasIntendedHost,
    ).prefault(''),
    from: filledText().default('Hatchway <no-reply@localhost>'),
  }),
  billing: section({
    processor: oneOf(['simulator', 'stripe']).default('simulator'),
    simulator_port: listenPort().default(0),
    stripe_secret_key: secretText().prefault(''),
    stripe_webhook_secret: secretText().prefault(''),
    /** URL of the Stripe API. Other values are only for test servers. */
    stripe_api_url: serviceUrl().default('https://api.stripe.com'),
  }),
  limits: section({
    /** @limit accounts: Sign-ins, sign-ups and password resets per network and minute | 429 `LOGIN_THROTTLED` */
    auth_per_minute: wholeNumber(1, 1_000_000).default(30),
    /** @limit accounts: Sign-in attempts per account and minute | 429 `LOGIN_THROTTLED` */
    auth_per_account_per_minute: wholeNumber(1, 1_000_000).default(10),
    /**
     * Concurrent API calls of one account while other calls wait.
     * @limit api: Concurrent calls per account, while other calls wait | further calls wait, then 429 `API_ACCOUNT_LIMIT`
     */
    account_calls_at_once: wholeNumber(1, 1000).default(16),
    /** @limit api: Calls per second and account, while other calls wait | further calls wait, then 429 `API_ACCOUNT_LIMIT` */
    account_calls_per_second: wholeNumber(1, 1_000_000).default(50),
    /** @limit api: Concurrent calls without an account per network, while other calls wait | further calls wait, then 429 `API_NETWORK_LIMIT` */
    network_calls_at_once: wholeNumber(1, 1000).default(8),
    /** @limit api: Calls per second without an account per network, while other calls wait | further calls wait, then 429 `API_NETWORK_LIMIT` */
    network_calls_per_second: wholeNumber(1, 1_000_000).default(10),
    /**
     * Maximum API keys, reservations, domains and connected apps that one account can create per day.
     * @limit accounts: Keys, reservations, domains and connected apps created per account and day | 429 `API_WRITES_PER_DAY`
     */
    creating_writes_per_day: wholeNumber(1, 1_000_000).default(2000),
  }),
  mcp: section({
    enabled: flag().default(true),
    /**
     * Maximum MCP calls of one account per minute.
     * @limit mcp: Platform: calls per account and minute | 429 `MCP_CALLS_THROTTLED`
     */
    calls_per_minute: wholeNumber(1, 1_000_000).default(120),
  }),
  oauth: section({
    /** Whether OAuth apps may have an http client id or a client id on a private address. */
    allow_private_clients: oneOf(['auto', true, false]).default('auto'),
  }),
  /** Retention periods of the platform's data in days. 0 keeps the data forever. */
  retention: section({
    /** @limit operator: Audit log, retention; 0 keeps entries forever | older entries are deleted */
    audit_days: wholeNumber(0, MOST_DAYS).default(400),
    /** @limit operator: Tunnel log, retention; 0 keeps entries forever | older entries are deleted */
    tunnel_log_days: wholeNumber(0, MOST_DAYS).default(400),
    /** @limit operator: Accounts without a verified email, retention; 0 keeps accounts forever | the account is deleted */
    unverified_user_days: wholeNumber(0, MOST_DAYS).default(7),
  }),
  plans: z
    .record(planName, plan, { error: (issue) => (issue.code === 'invalid_key' ? PLAN_NAME : 'a table') })
    .prefault({}),
});

const databaseUrl = () => secretUrl(/^postgres(ql)?:\/\//i, 'postgres://user:password@host/name').prefault('');

export const serverFileSchema = table({
  data_dir: filledText().default(DEFAULT_DATA_DIR),
  database: section({
    url: databaseUrl(),
    /** URL of a direct database connection for LISTEN, needed if `url` is a connection pooler. */
    direct_url: databaseUrl(),
  }),
  backup: backupSchema,
  telemetry: telemetrySchema,
  platform: platformSchema,
  server: serverSchema,
  region: regionSchema,
  auth: authSchema,
  names: namesSchema,
  tls: tlsSchema,
  acme: acmeSchema,
  dns: dnsSchema,
  limits: limitsSchema,
  capture: captureSchema,
  load_balancing: loadBalancingSchema,
  udp: udpSchema,
  p2p: p2pSchema,
  policy: policySchema,
});

/** Configuration as parsed by the schema, without the defaults that depend on other keys. */
export type ParsedServerConfig = z.output<typeof serverFileSchema>;

type SignUp = NonNullable<ParsedServerConfig['platform']['sign_up']>;

/** A loaded server configuration. Its keys are exactly the keys of server.toml, and every key has a configured or a default value. */
export type ServerConfig = DeepReadonly<
  Omit<ParsedServerConfig, 'platform'> & { platform: ParsedServerConfig['platform'] & { sign_up: SignUp } }
>;
