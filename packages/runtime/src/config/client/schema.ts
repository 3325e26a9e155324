// The whole config.yml of the client as one schema, and its typed value.
import * as z from 'zod';
import type { DeepReadonly } from '../deep-freeze.ts';
import {
  filledSecretText,
  filledText,
  flag,
  oneOf,
  oneOfWithLater,
  printableName,
  seconds,
  table,
  targetPort,
  url,
  wholeNumber,
} from '../values.ts';

const PATH = 'a path that begins with / and has no spaces or control characters';

const healthCheck = table({
  /** Absent: no probe. */
  type: oneOf(['tcp', 'http']).optional(),
  path: z
    .string({ error: PATH })
    .regex(/^\/[^\s\p{Cc}]{0,2047}$/u, { error: PATH })
    .optional(),
  interval_secs: seconds(86_400).default(10),
  timeout_secs: seconds(3600).default(3),
  max_failed: wholeNumber(1, 1000).default(3),
  expect_2xx: flag().default(true),
  alert_webhook: url({ orEmpty: false, concealed: true, maxCharacters: 2048 }).optional(),
});

// `@` is kept for the metrics, which write name@label when two groups share a name.
const GROUP = '1 to 100 printable characters without @';
const HOST_HEADER = '"keep", "rewrite" or a host name';

const tunnel = table({
  proto: oneOfWithLater(['http', 'https', 'tcp'], ['udp', 'p2p']),
  local_port: targetPort(),
  local_host: filledText().default('127.0.0.1'),
  local_protocol: oneOf(['http1', 'h2c']).default('http1'),
  local_tls_verify: flag().default(true),
  remote_port: targetPort().optional(),
  subdomain: filledText().optional(),
  host_header: z
    .string({ error: HOST_HEADER })
    .regex(/^[!-~]{1,255}$/, { error: HOST_HEADER })
    .default('keep'),
  capture: flag().default(true),
  group: z
    .string({ error: GROUP })
    .regex(/^[^@\p{C}\p{Zl}\p{Zp}]{1,100}$/u, { error: GROUP })
    .optional(),
  group_key: filledSecretText().optional(),
  group_key_env: filledText().optional(),
  group_key_file: filledText().optional(),
  health_check: healthCheck.optional(),
});

const SERVER = '"host:port" of the control plane';

export const clientFileSchema = table({
  server: z
    .string({ error: SERVER })
    .regex(/^(\[[0-9a-fA-F:.%]+\]|[^\s:/@[\]]+)(:\d{1,5})?$/, { error: SERVER })
    .default('127.0.0.1:4040'),
  /** Absent: the host of `server`, port 4041. */
  api_url: url({ orEmpty: false }).optional(),
  /** Absent: the platform of the last login, else http://localhost:8080. */
  platform_url: url({ orEmpty: false }).optional(),
  /** Absent: TLS unless the host is loopback. */
  tls: flag().optional(),
  ca_file: filledText().optional(),
  insecure: flag().default(false),
  auth_token: filledSecretText().optional(),
  auth_token_file: filledText().optional(),
  tunnels: z
    .record(printableName(), tunnel, {
      error: (issue) => (issue.code === 'invalid_key' ? 'a name of 1 to 100 printable characters' : 'a table'),
    })
    .prefault({}),
});

/** What the file says, before group keys were looked up. */
export type ClientFile = z.output<typeof clientFileSchema>;

/** One entry of `tunnels`, and the line of the file where it begins. `group_key` is set whichever key gave it. */
export type ClientTunnel = DeepReadonly<z.output<typeof tunnel>> & { readonly line: number };

export type ClientConfig = DeepReadonly<Omit<ClientFile, 'tunnels'>> & {
  readonly tunnels: Readonly<Record<string, ClientTunnel>>;
};
