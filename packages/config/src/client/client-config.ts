// config.yml: its schema, what no single key can tell, the keys of its groups and peers, and the one checked and frozen value; every refusal at its
// line.

import { homedir } from 'node:os';
import { dirname } from 'node:path';
import type { Secret } from '@tunnel/runtime';
import { entryShape, SECRET_KEYS } from '@tunnel/tunnel-spec';
import { filledText, flag, table, url } from '@tunnel/tunnel-spec/values';
import * as z from 'zod';
import { type GivenSecret, readEntrySecret, type SecretSources } from '../layers/entry-secret.ts';
import { readConfigText } from '../layers/file-layers.ts';
import { type Layer, pathText, type Tree, valueAt } from '../layers/layer.ts';
import { pathFrom } from '../layers/path-from.ts';
import { type ConfigSource, type Finding, refuseFinding, refuseIssues } from '../layers/problem.ts';
import {
  type DeepReadonly,
  deepFreeze,
  filledSecretText,
  printableName,
  secretUrl,
  section,
} from '../layers/values.ts';
import { yamlLayer } from '../layers/yaml-layer.ts';
import { PolicySource } from '../policy/policy-source.ts';
import { foreignKeys, localFindings, peerFindings } from './tunnel-keys.ts';

/** One entry of `tunnels`, by the rows of the options. */
const tunnel = table(entryShape(filledSecretText()));

const ALLOWED = 'a target such as "127.0.0.1:3000", "127.0.0.1:3000-3999" or "127.0.0.1:*"';
const ALLOWED_FORM = /^(?:\[[0-9a-f:.]+\]|[^\s:/@?#*[\]]+):(?:\*|(\d{1,5})(?:-(\d{1,5}))?)$/i;

const isAllowedTarget = (text: string): boolean => {
  const [whole, from = '1', to = from] = ALLOWED_FORM.exec(text) ?? [];
  return whole !== undefined && Number(from) >= 1 && Number(from) <= Number(to) && Number(to) <= 65_535;
};

/** What `tunnel mcp` may do. */
const models = section({
  read_only: flag().default(false),
  allow: z
    .array(z.string({ error: ALLOWED }).refine(isAllowedTarget, { error: ALLOWED }), { error: 'a list of targets' })
    .default(['127.0.0.1:1024-65535']),
});

const PROXY_URL = /^(none|(https?|socks5h?):\/\/([^\s/?#@]*@)?(\[[0-9a-f:.%]+\]|[^\s:/@?#[\]]+)(:\d{1,5})?\/?)$/i;

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
  /** Empty: HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment. */
  proxy: secretUrl(PROXY_URL, 'http://user:password@host:3128, https://…, socks5://… or socks5h://…, or none').prefault(
    '',
  ),
  proxy_auth_file: filledText().optional(),
  auth_token: filledSecretText().optional(),
  auth_token_file: filledText().optional(),
  /** Absent: none is written. */
  log_file: filledText().optional(),
  /** Reloaded by itself when the file changes. */
  watch: flag().default(false),
  mcp: models,
  tunnels: z
    .record(printableName(), tunnel, {
      error: (issue) => (issue.code === 'invalid_key' ? 'a name of 1 to 100 printable characters' : 'a table'),
    })
    .prefault({}),
});

/** What the file says, before group keys were looked up. */
type ClientFile = z.output<typeof clientFileSchema>;

/** One entry of `tunnels`, and the line of the file where it begins. `group_key` and `p2p_secret` are set whichever key gave them. */
export type ClientTunnel = Omit<DeepReadonly<z.output<typeof tunnel>>, 'policy'> & {
  readonly line: number;
  /** As it stands there, not read so far: what is wrong with it is no matter of commands that open no tunnel. A text is the path of its file. */
  readonly policy?: PolicySource | string;
};

export type ClientConfig = DeepReadonly<Omit<ClientFile, 'tunnels'>> & {
  readonly tunnels: Readonly<Record<string, ClientTunnel>>;
};

interface ClientConfigSources {
  readonly file: string;
  /** What it says, for those who have read it; it may say something else by now. */
  readonly text?: string;
  /** For `group_key_env`. */
  readonly env: NodeJS.ProcessEnv;
  /** For paths that begin with `~/`; the user's own when left out. */
  readonly home?: string;
}

/** Throws a `ConfigProblem` for the first thing that is wrong. */
export const loadClientConfig = (sources: ClientConfigSources): ClientConfig => {
  const layer = yamlLayer(sources.file, sources.text ?? readConfigText(sources.file));
  const source = { schema: clientFileSchema, layers: [layer], merged: layer.tree };
  const parsed = clientFileSchema.safeParse(layer.tree);
  if (!parsed.success) throw refuseIssues(source, parsed.error.issues);
  const findings = clientFindings(parsed.data, layer.tree).sort((a, b) => layer.line(a.path) - layer.line(b.path));
  if (findings[0] !== undefined) throw refuseFinding(source, findings[0]);
  const { file, env, home = homedir() } = sources;
  const pathOf = (path: string): string => pathFrom(dirname(file), path, home);
  const tunnels = finishTunnels(parsed.data, layer, source, { file, home, env, pathOf });
  return { ...deepFreeze(parsed.data), tunnels: frozenTunnels(tunnels) };
};

/** The keys that stand in the file, of those with a default too. */
export const clientFileKeys = (file: string): readonly string[] =>
  Object.keys(yamlLayer(file, readConfigText(file)).tree);

/** A source of a policy is closed anyway. */
const frozenTunnels = (tunnels: Record<string, ClientTunnel>): Readonly<Record<string, ClientTunnel>> => {
  deepFreeze(tunnels);
  return tunnels;
};

interface EntrySources extends SecretSources {
  readonly file: string;
  readonly home: string;
}

const finishTunnels = (
  file: ClientFile,
  layer: Layer,
  source: ConfigSource,
  sources: EntrySources,
): Record<string, ClientTunnel> =>
  Object.fromEntries(
    Object.entries(file.tunnels).map(([name, { policy, ...entry }]) => {
      const path = ['tunnels', name];
      const secretOf = (key: SecretKey): Secret | undefined => {
        const answer = readEntrySecret(path, givenSecret(key, entry), sources);
        if ('finding' in answer) throw refuseFinding(source, answer.finding);
        return answer.secret;
      };
      const secrets = SECRET_KEYS.map((key) => [key, secretOf(key)] as const);
      return [
        name,
        {
          ...entry,
          ...localPathsOf(entry, sources.pathOf),
          ...Object.fromEntries(secrets.filter(([, secret]) => secret !== undefined)),
          ...(policy === undefined ? {} : { policy: policyOf(policy, layer, [...path, 'policy'], sources) }),
          line: layer.line(path),
        },
      ];
    }),
  );

const policyOf = (
  value: unknown,
  layer: Layer,
  path: readonly string[],
  { file, env, home, pathOf }: EntrySources,
): PolicySource | string => {
  if (typeof value === 'string') return pathOf(value);
  return new PolicySource({
    value,
    file,
    line: (inner) => layer.line([...path, ...inner]),
    key: (inner) => pathText([...path, ...inner]),
    name: file,
    folder: dirname(file),
    env,
    home,
  });
};

/** Seen from the folder of the file, wherever the client runs. */
const localPathsOf = (
  { local_socket, files }: Pick<TunnelEntry, 'local_socket' | 'files'>,
  pathOf: SecretSources['pathOf'],
) => ({
  ...(local_socket === undefined ? {} : { local_socket: pathOf(local_socket) }),
  ...(files === undefined ? {} : { files: { ...files, dir: pathOf(files.dir) } }),
});

type SecretKey = (typeof SECRET_KEYS)[number];

const givenSecret = (key: SecretKey, entry: Omit<TunnelEntry, 'policy'>): GivenSecret => ({
  name: key,
  word: key.slice(key.lastIndexOf('_') + 1),
  text: entry[key],
  variable: entry[`${key}_env`],
  file: entry[`${key}_file`],
  // Code that uses a p2p secret cuts off its line break, wherever the secret comes from.
  endsWithLineBreak: key !== 'group_key',
});

// What one key of config.yml demands of another.

type TunnelEntry = ClientFile['tunnels'][string];

const GROUP_KEY_SOURCES = ['group_key', 'group_key_env', 'group_key_file'] as const;

const clientFindings = (config: ClientFile, written: Tree): Finding[] => [
  ...(config.auth_token !== undefined && config.auth_token_file !== undefined
    ? [{ path: ['auth_token_file'], expected: 'left out when `auth_token` is given', got: 'both' }]
    : []),
  ...(config.proxy_auth_file !== undefined && config.proxy.reveal().includes('@')
    ? [{ path: ['proxy_auth_file'], expected: 'left out when `proxy` has a user name in it', got: 'both' }]
    : []),
  ...Object.entries(config.tunnels).flatMap(([name, entry]) => {
    const path = ['tunnels', name];
    const keys = valueAt(written, path) as Tree;
    const foreign = foreignKeys(path, entry.proto, keys);
    // What a foreign key lacks is no news.
    return foreign.length > 0 ? foreign : tunnelFindings(path, entry, keys);
  }),
];

const tunnelFindings = (path: string[], entry: TunnelEntry, written: Tree): Finding[] => [
  ...(entry.proto === 'p2p' ? peerFindings(path, written) : localFindings(path, written)),
  ...groupFindings(path, entry),
  ...(entry.health_check?.type === 'http' && entry.health_check.path === undefined
    ? [{ path: [...path, 'health_check', 'path'], expected: 'an "http" check asks for it', got: 'nothing' }]
    : []),
  ...hostFindings(path, entry),
  // Version 1 is a line of text before a stream of bytes.
  ...(entry.proto === 'udp' && entry.proxy_protocol === 'v1'
    ? [{ path: [...path, 'proxy_protocol'], expected: 'one of "v2"' }]
    : []),
  // Over TLS, HTTP/2 is no h2c.
  ...(entry.proto === 'https' && entry.local_protocol === 'h2c'
    ? [{ path: [...path, 'local_protocol'], expected: 'left out unless `proto` is "http"' }]
    : []),
];

/** One host a tunnel. Visitors of a tls tunnel are told apart by it alone; a group's name is its subdomain where it says none. */
const hostFindings = (path: string[], { proto, subdomain, domain, group, health_check }: TunnelEntry): Finding[] => {
  if (proto === 'tls' && health_check?.type === 'http') {
    return [{ path: [...path, 'health_check', 'type'], expected: '"tcp" when `proto` is "tls"' }];
  }
  if (subdomain !== undefined && domain !== undefined) {
    return [{ path: [...path, 'domain'], expected: 'left out when `subdomain` is given', got: 'both' }];
  }
  if (proto !== 'tls' || subdomain !== undefined || domain !== undefined || group !== undefined) return [];
  return [
    { path: [...path, 'proto'], expected: 'joined by a `subdomain` or a `domain` when it is "tls"', got: 'neither' },
  ];
};

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
