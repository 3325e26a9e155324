// Loads config.yml: the schema, the rules between several keys, and the secrets of groups and peers. The result is one checked and frozen
// value. Every error names the line of its key.

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

/** Schema of one entry of `tunnels`, built from the table of tunnel options. */
const tunnel = table(entryShape(filledSecretText()));

const ALLOWED = 'a target such as "127.0.0.1:3000", "127.0.0.1:3000-3999" or "127.0.0.1:*"';
const ALLOWED_FORM = /^(?:\[[0-9a-f:.]+\]|[^\s:/@?#*[\]]+):(?:\*|(\d{1,5})(?:-(\d{1,5}))?)$/i;

const isAllowedTarget = (text: string): boolean => {
  const [whole, from = '1', to = from] = ALLOWED_FORM.exec(text) ?? [];
  return whole !== undefined && Number(from) >= 1 && Number(from) <= Number(to) && Number(to) <= 65_535;
};

/** Schema of the key `mcp`: the permissions of `tunnel mcp`. */
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
  /** URL of the edge's REST API. Default: the host of `server`, port 4041. */
  api_url: url({ orEmpty: false }).optional(),
  /** URL of the platform. Default: the platform of the last login; without a login, http://localhost:8080. */
  platform_url: url({ orEmpty: false }).optional(),
  /** Whether to use TLS to the server. Default: true unless the host is loopback. */
  tls: flag().optional(),
  ca_file: filledText().optional(),
  insecure: flag().default(false),
  /** Proxy to the server. If empty, the environment variables HTTPS_PROXY, ALL_PROXY and NO_PROXY apply. */
  proxy: secretUrl(PROXY_URL, 'http://user:password@host:3128, https://…, socks5://… or socks5h://…, or none').prefault(
    '',
  ),
  proxy_auth_file: filledText().optional(),
  auth_token: filledSecretText().optional(),
  auth_token_file: filledText().optional(),
  /** Path of the client's log file. Without the key, the client writes no log file. */
  log_file: filledText().optional(),
  /** Whether the client reloads config.yml automatically when the file changes. */
  watch: flag().default(false),
  mcp: models,
  tunnels: z
    .record(printableName(), tunnel, {
      error: (issue) => (issue.code === 'invalid_key' ? 'a name of 1 to 100 printable characters' : 'a table'),
    })
    .prefault({}),
});

/** Contents of config.yml as parsed by the schema, before group keys are looked up. */
type ClientFile = z.output<typeof clientFileSchema>;

/**
 * One entry of `tunnels`, with the line of the file where the entry begins. `group_key` and `p2p_secret` are filled in even if the secret
 * comes from a variable or a file.
 */
export type ClientTunnel = Omit<DeepReadonly<z.output<typeof tunnel>>, 'policy'> & {
  readonly line: number;
  /**
   * Policy of the tunnel, not yet checked, so that a mistake in a policy does not stop commands that open no tunnel. A string is the path
   * of a policy file.
   */
  readonly policy?: PolicySource | string;
};

export type ClientConfig = DeepReadonly<Omit<ClientFile, 'tunnels'>> & {
  readonly tunnels: Readonly<Record<string, ClientTunnel>>;
};

interface ClientConfigSources {
  readonly file: string;
  /** Text of the file, from callers that have already read the file. The text on disk may have changed since. */
  readonly text?: string;
  /** Environment variables, for keys such as `group_key_env`. */
  readonly env: NodeJS.ProcessEnv;
  /** Home folder for paths that begin with `~/`. Default: the home folder of the current user. */
  readonly home?: string;
}

/** Loads and checks config.yml. Throws a `ConfigProblem` for the first mistake. */
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

/** Returns the top-level keys written in the file, without keys that only have a default. */
export const clientFileKeys = (file: string): readonly string[] =>
  Object.keys(yamlLayer(file, readConfigText(file)).tree);

/** Freezes the tunnels of a loaded config. A PolicySource in a tunnel needs no freezing, because its fields are private. */
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

/**
 * Returns the paths of a tunnel's local socket and served folder. Relative paths start at the folder of config.yml, not at the client's
 * working directory.
 */
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
  // A p2p secret may end with a line break: its consumers strip the line break, wherever the secret comes from.
  endsWithLineBreak: key !== 'group_key',
});

// Rules between several keys of config.yml.

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
    // If a tunnel has keys of another kind of tunnel, only the foreign keys are reported: further findings would depend on the wrong
    // `proto`.
    return foreign.length > 0 ? foreign : tunnelFindings(path, entry, keys);
  }),
];

const tunnelFindings = (path: string[], entry: TunnelEntry, written: Tree): Finding[] => [
  ...(entry.proto === 'p2p' ? peerFindings(path, written) : localFindings(path, written)),
  ...groupFindings(path, entry),
  ...(entry.health_check?.type === 'http' && entry.health_check.path === undefined
    ? [{ path: [...path, 'health_check', 'path'], expected: 'an "http" check needs a path', got: 'nothing' }]
    : []),
  ...hostFindings(path, entry),
  // Version 1 of the PROXY protocol is a line of text before a byte stream, so udp tunnels cannot use version 1.
  ...(entry.proto === 'udp' && entry.proxy_protocol === 'v1'
    ? [{ path: [...path, 'proxy_protocol'], expected: 'one of "v2"' }]
    : []),
  // h2c is HTTP/2 without TLS, so a local service behind https cannot use h2c.
  ...(entry.proto === 'https' && entry.local_protocol === 'h2c'
    ? [{ path: [...path, 'local_protocol'], expected: 'left out unless `proto` is "http"' }]
    : []),
];

/**
 * Checks the host of a tunnel. A tunnel has at most one host. A tls tunnel needs a host, because only the host identifies the tunnel to
 * which a visitor belongs. For a group, the name of the group can serve as the subdomain.
 */
const hostFindings = (path: string[], { proto, subdomain, domain, group, health_check }: TunnelEntry): Finding[] => {
  if (proto === 'tls' && health_check?.type === 'http') {
    return [{ path: [...path, 'health_check', 'type'], expected: '"tcp" when `proto` is "tls"' }];
  }
  if (subdomain !== undefined && domain !== undefined) {
    return [{ path: [...path, 'domain'], expected: 'left out when `subdomain` is given', got: 'both' }];
  }
  if (proto !== 'tls' || subdomain !== undefined || domain !== undefined || group !== undefined) return [];
  return [
    { path: [...path, 'proto'], expected: 'combined with `subdomain` or `domain` when it is "tls"', got: 'neither' },
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
        expected: 'combined with `group_key`, `group_key_env` or `group_key_file`',
        got: 'none',
      },
    ];
  }
  return second === undefined
    ? []
    : [{ path: [...path, second], expected: `left out when \`${first}\` is given`, got: 'both' }];
};
