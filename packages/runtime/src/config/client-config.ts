// config.yml: its schema, what no single key can tell, the keys of its groups, and the one checked and frozen value; every refusal at its
// line.
import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import { Secret } from '../secret.ts';
import { readFailure } from './file-layers.ts';
import { type Layer, type Tree, valueAt } from './layer.ts';
import { type ConfigSource, type Finding, refuseFinding, refuseIssues } from './problem.ts';
import { foreignKeys } from './tunnel-keys.ts';
import {
  type DeepReadonly,
  deepFreeze,
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
} from './values.ts';
import { yamlLayer } from './yaml-layer.ts';

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
  proto: oneOfWithLater(['http', 'https', 'tcp', 'udp'], ['p2p']),
  local_port: targetPort(),
  local_host: filledText().default('127.0.0.1'),
  local_protocol: oneOf(['http1', 'h2c']).default('http1'),
  local_tls_verify: flag().default(true),
  remote_port: targetPort().optional(),
  /** Absent: the edge's. */
  idle_secs: wholeNumber(5, 3600).optional(),
  proxy_protocol: oneOf(['v2']).optional(),
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
type ClientFile = z.output<typeof clientFileSchema>;

/** One entry of `tunnels`, and the line of the file where it begins. `group_key` is set whichever key gave it. */
export type ClientTunnel = DeepReadonly<z.output<typeof tunnel>> & { readonly line: number };

export type ClientConfig = DeepReadonly<Omit<ClientFile, 'tunnels'>> & {
  readonly tunnels: Readonly<Record<string, ClientTunnel>>;
};

interface ClientConfigSources {
  readonly file: string;
  /** For `group_key_env`. */
  readonly env: NodeJS.ProcessEnv;
  /** For paths that begin with `~/`; the user's own when left out. */
  readonly home?: string;
}

/** Throws a `ConfigProblem` for the first thing that is wrong. */
export const loadClientConfig = (sources: ClientConfigSources): ClientConfig => {
  const layer = yamlLayer(sources.file);
  const source = { schema: clientFileSchema, layers: [layer], merged: layer.tree };
  const parsed = clientFileSchema.safeParse(layer.tree);
  if (!parsed.success) throw refuseIssues(source, parsed.error.issues);
  const findings = clientFindings(parsed.data, layer.tree).sort((a, b) => layer.line(a.path) - layer.line(b.path));
  if (findings[0] !== undefined) throw refuseFinding(source, findings[0]);
  const { file, env, home = homedir() } = sources;
  const pathOf = (path: string): string => pathFrom(dirname(file), path, home);
  return deepFreeze({ ...parsed.data, tunnels: finishTunnels(parsed.data, layer, source, { env, pathOf }) });
};

const finishTunnels = (
  file: ClientFile,
  layer: Layer,
  source: ConfigSource,
  keySources: GroupKeySources,
): Record<string, ClientTunnel> =>
  Object.fromEntries(
    Object.entries(file.tunnels).map(([name, entry]) => {
      const path = ['tunnels', name];
      const answer = readGroupKey(path, entry, keySources);
      if ('finding' in answer) throw refuseFinding(source, answer.finding);
      const groupKey = answer.key === undefined ? {} : { group_key: answer.key };
      return [name, { ...entry, ...groupKey, line: layer.line(path) }];
    }),
  );

// What one key of config.yml demands of another.

type TunnelEntry = ClientFile['tunnels'][string];

const GROUP_KEY_SOURCES = ['group_key', 'group_key_env', 'group_key_file'] as const;

const clientFindings = (config: ClientFile, written: Tree): Finding[] => [
  ...(config.auth_token !== undefined && config.auth_token_file !== undefined
    ? [{ path: ['auth_token_file'], expected: 'left out when `auth_token` is given', got: 'both' }]
    : []),
  ...Object.entries(config.tunnels).flatMap(([name, entry]) => {
    const path = ['tunnels', name];
    const foreign = foreignKeys(path, entry.proto, valueAt(written, path) as Tree);
    // What a foreign key lacks is no news.
    return foreign.length > 0 ? foreign : tunnelFindings(path, entry);
  }),
];

const tunnelFindings = (path: string[], entry: TunnelEntry): Finding[] => [
  ...groupFindings(path, entry),
  ...(entry.health_check?.type === 'http' && entry.health_check.path === undefined
    ? [{ path: [...path, 'health_check', 'path'], expected: 'given when `type` is "http"', got: 'nothing' }]
    : []),
  // Over TLS, HTTP/2 is no h2c.
  ...(entry.proto === 'https' && entry.local_protocol === 'h2c'
    ? [{ path: [...path, 'local_protocol'], expected: 'left out unless `proto` is "http"' }]
    : []),
];

const groupFindings = (path: string[], entry: TunnelEntry): Finding[] => {
  const [first, second] = GROUP_KEY_SOURCES.filter((key) => entry[key] !== undefined);
  if (first !== undefined && entry.group === undefined) {
    return [{ path: [...path, first], expected: 'left out without a `group`', got: 'no `group`' }];
  }
  if (first === undefined && entry.group !== undefined) {
    return [
      {
        path: [...path, 'group'],
        expected: 'joined by a `group_key`, `group_key_env` or `group_key_file`',
        got: 'none',
      },
    ];
  }
  return second === undefined
    ? []
    : [{ path: [...path, second], expected: `left out when \`${first}\` is given`, got: 'both' }];
};

// The group key of an entry, whichever of the three keys gives it.

type GroupKeyAnswer = { readonly key: Secret | undefined } | { readonly finding: Finding };

interface GroupKeySources {
  readonly env: NodeJS.ProcessEnv;
  /** Where a path of the file leads. */
  readonly pathOf: (path: string) => string;
}

/** Nobody types a key of this size; it is some other file. */
const MOST_BYTES = 64 * 1024;

const readGroupKey = (path: string[], entry: TunnelEntry, sources: GroupKeySources): GroupKeyAnswer => {
  const { group_key: key, group_key_env: variable, group_key_file: file } = entry;
  if (variable !== undefined) {
    const text = sources.env[variable] ?? '';
    if (text !== '') return { key: new Secret(text) };
    const got = `${JSON.stringify(variable)}, which is not set`;
    return {
      finding: { path: [...path, 'group_key_env'], expected: 'the name of a variable that holds the key', got },
    };
  }
  if (file === undefined) return { key };
  const answer = readGroupKeyFile(sources.pathOf(file));
  if ('key' in answer) return answer;
  const got = `${JSON.stringify(file)}: ${answer.reason}`;
  return { finding: { path: [...path, 'group_key_file'], expected: 'a file that holds the key', got } };
};

export const readGroupKeyFile = (file: string): { readonly key: Secret } | { readonly reason: string } => {
  try {
    if (statSync(file).size > MOST_BYTES) return { reason: `it is larger than ${MOST_BYTES} bytes` };
    // Bytes that are no text would all become the same character, and different keys one.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
    // Editors and `echo` end a file with a line break that is no part of the key.
    const key = text.replace(/\r?\n$/, '');
    return key === '' ? { reason: 'it is empty' } : { key: new Secret(key) };
  } catch (error) {
    return { reason: readFailure(error) };
  }
};

/** Where a path in config.yml or on the command line leads, seen from `folder`; `~/` means the home folder, as in a shell. */
export const pathFrom = (folder: string, path: string, home: string): string =>
  path.startsWith('~/') ? join(home, path.slice(2)) : resolve(folder, path);
