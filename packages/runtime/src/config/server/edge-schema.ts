// The tables of the edge: [server] [region] [auth] [tls] [limits] [capture] [load_balancing].
import * as z from 'zod';
import {
  addressList,
  filledText,
  flag,
  listenPort,
  oneOf,
  portRange,
  printableName,
  seconds,
  secretText,
  section,
  table,
  text,
  url,
  wholeNumber,
} from '../values.ts';

const DAY_SECS = 86_400;
const HOUR_SECS = 3600;
const MOST_CONNECTIONS = 1_000_000;

const DOMAIN = 'a host name such as "example.com"';
const domain = z
  .string({ error: DOMAIN })
  .regex(/^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i, {
    error: DOMAIN,
  })
  // Hosts are compared in lower case.
  .toLowerCase();

export const serverSchema = section({
  host: filledText().default('127.0.0.1'),
  api_host: text().default(''),
  metrics_host: filledText().default('127.0.0.1'),
  domain: domain.default('localhost'),
  http_port: listenPort().default(8000),
  https_port: listenPort().default(8443),
  plain_http: oneOf(['redirect', 'proxy']).default('redirect'),
  control_port: listenPort().default(4040),
  api_port: listenPort().default(4041),
  metrics_port: listenPort().default(9090),
  drain_secs: z
    .number({ error: `a number of seconds from 0 to ${DAY_SECS}` })
    .min(0, { error: `a number of seconds from 0 to ${DAY_SECS}` })
    .max(DAY_SECS, { error: `a number of seconds from 0 to ${DAY_SECS}` })
    .default(30),
  head_timeout_secs: seconds(HOUR_SECS).default(15),
  first_byte_timeout_secs: seconds(DAY_SECS).default(60),
  trusted_proxies: addressList().default([]),
  platform_url: url({ orEmpty: true }).default(''),
  platform_credential_file: text().default(''),
  api_url: url({ orEmpty: true }).default(''),
});

export const regionSchema = section({
  id: printableName().default('local'),
  name: printableName().default('Local'),
  location: text().default(''),
});

const SHA256_HEX = '64 lower-case hex digits of a SHA-256';

export const authSchema = section({
  admin_token: secretText().prefault(''),
  keys: z
    .array(
      table({
        account: printableName(),
        sha256: z.string({ error: SHA256_HEX }).regex(/^[0-9a-f]{64}$/, { error: SHA256_HEX }),
      }),
      { error: 'a list of tables [[auth.keys]]' },
    )
    .default([]),
});

export const tlsSchema = section({ cert_path: text().default(''), key_path: text().default('') });

export const limitsSchema = section({
  tcp_port_range: portRange().default([20_000, 20_099]),
  udp_port_range: portRange().default([20_100, 20_199]),
  tunnels_per_session: wholeNumber(1, 100_000).default(100),
  connections_per_tunnel: wholeNumber(1, MOST_CONNECTIONS).default(10_000),
  connections_per_address: wholeNumber(1, MOST_CONNECTIONS).default(10_000),
  auth_failures_per_minute: wholeNumber(1, MOST_CONNECTIONS).default(60),
});

export const captureSchema = section({ enabled: flag().default(true), bodies: flag().default(true) });

export const loadBalancingSchema = section({
  enabled: flag().default(false),
  alert_webhook_url: url({ orEmpty: true, concealed: true }).default(''),
  alert_allow_private: oneOf(['auto', true, false]).default('auto'),
  alert_secret: secretText().prefault(''),
});
