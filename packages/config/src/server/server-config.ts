// Merges server.toml, the environment and flags over the defaults into one checked and frozen value.
import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, relative, resolve, sep } from 'node:path';
import { isLoopbackHost } from '@tunnel/rules/net';
import { envLayer } from '../layers/env-layer.ts';
import { tomlLayer } from '../layers/file-layers.ts';
import { mergeLayers, namedLayer } from '../layers/layer.ts';
import { type Finding, refuseFinding, refuseIssues } from '../layers/problem.ts';
import { deepFreeze } from '../layers/values.ts';
import { domainFindings, keyFindings, reservedFindings } from './account-findings.ts';
import { clearTextFindings } from './clear-text.ts';
import { isLoopbackConfig } from './loopback-config.ts';
import {
  BUILT_IN_PLANS,
  DEFAULT_DATA_DIR,
  type ParsedServerConfig,
  type ServerConfig,
  serverFileSchema,
} from './server-schema.ts';

export interface ServerConfigSources {
  /** Path of server.toml. Without a path, only `defaults`, the environment and `overrides` apply. */
  readonly file?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Config values that override the built-in defaults and are overridden by server.toml. */
  readonly defaults?: object;
  /** Config values above all other layers: the flags of the command line. */
  readonly overrides?: object;
  /** Additional checks, for example of folders that a command is going to use. */
  readonly findings?: (config: ServerConfig) => readonly Finding[];
}

/** Loads and checks the configuration of a server. Throws a `ConfigProblem` for the first mistake. */
export const loadServerConfig = (sources: ServerConfigSources): ServerConfig => {
  const layers = [
    namedLayer('built-in defaults', { platform: { plans: BUILT_IN_PLANS } }),
    namedLayer('defaults', sources.defaults ?? {}),
    ...(sources.file === undefined ? [] : [tomlLayer(sources.file)]),
    envLayer(serverFileSchema, sources.env),
    namedLayer('command line', sources.overrides ?? {}),
  ];
  const source = { schema: serverFileSchema, layers, merged: mergeLayers(layers) };
  const parsed = serverFileSchema.safeParse(source.merged);
  if (!parsed.success) throw refuseIssues(source, parsed.error.issues);
  const config = deepFreeze(withDefaults(parsed.data));
  const [finding] = [...serverFindings(config), ...(sources.findings?.(config) ?? [])];
  if (finding !== undefined) throw refuseFinding(source, finding);
  return config;
};

/**
 * Fills in defaults that depend on other keys. A public server without `sign_up` allows invited people only, so that strangers cannot
 * sign up.
 */
const withDefaults = (parsed: ParsedServerConfig) => {
  const { platform } = parsed;
  const sign_up = platform.sign_up ?? (isLoopbackConfig(parsed) ? 'open' : 'invite');
  return { ...parsed, platform: { ...platform, sign_up } };
};

/** Name of the config file in a server's data directory. */
export const SERVER_FILE = 'server.toml';

/**
 * Returns the config file in the data directory, which every command reads unless a file is named. `dataDir` comes from the command line;
 * without `dataDir`, the environment variable or the default applies. Returns undefined if the directory has no such file.
 */
export const findServerFile = (env: NodeJS.ProcessEnv, dataDir?: string): string | undefined => {
  const named = dataDir ?? envLayer(serverFileSchema, env).tree['data_dir'];
  const file = join(typeof named === 'string' && named !== '' ? named : DEFAULT_DATA_DIR, SERVER_FILE);
  return existsSync(file) ? file : undefined;
};

// Rules between several keys of server.toml.

const EMPTY = 'an empty string';

const serverFindings = (config: ServerConfig): Finding[] => [
  ...tlsFindings(config),
  ...localCaFindings(config),
  ...acmeFindings(config),
  ...platformFindings(config),
  ...keyFindings(config),
  ...reservedFindings(config),
  ...domainFindings(config),
  ...loginFindings(config),
  ...clearTextFindings(config),
  ...backupFindings(config),
];

const tlsFindings = ({ tls }: ServerConfig): Finding[] => {
  if ((tls.cert_path === '') === (tls.key_path === '')) return [];
  const [missing, given] =
    tls.cert_path === '' ? (['cert_path', 'key_path'] as const) : (['key_path', 'cert_path'] as const);
  return [{ path: ['tls', missing], expected: `set when \`tls.${given}\` is set`, got: EMPTY }];
};

/**
 * Checks `tls.local_ca`. The local CA issues certificates for names of this machine only, and cannot be combined with a certificate from
 * files.
 */
const localCaFindings = ({ tls, server }: ServerConfig): Finding[] => {
  if (!tls.local_ca) return [];
  const path = ['tls', 'local_ca'];
  if (tls.cert_path !== '') return [{ path, expected: 'false when `tls.cert_path` is set', got: 'true' }];
  if (server.domain === 'localhost') return [];
  return [{ path, expected: 'false unless `server.domain` is "localhost"', got: 'true' }];
};

const acmeFindings = ({ acme, server, platform, tls }: ServerConfig): Finding[] => {
  const path = (key: string): string[] => ['acme', key];
  const eabKey = acme.eab_hmac_key.reveal();
  return [
    ...(acme.enabled && server.domain === 'localhost'
      ? [{ path: path('enabled'), expected: 'false unless `server.domain` is a public name', got: 'true' }]
      : []),
    ...(acme.enabled && tls.local_ca
      ? [{ path: ['tls', 'local_ca'], expected: 'false when `acme.enabled` is true', got: 'true' }]
      : []),
    // The ACME directory's responses are trusted, so an attacker on the network must not be able to change them.
    ...(isClearAfar(acme.directory)
      ? [{ path: path('directory'), expected: 'an https URL, or a URL of this machine' }]
      : []),
    ...(acme.dns === 'exec' && acme.dns_exec === ''
      ? [{ path: path('dns_exec'), expected: 'set when `acme.dns` is "exec"', got: EMPTY }]
      : []),
    ...((acme.eab_kid === '') === (eabKey === '')
      ? []
      : [
          {
            path: path(acme.eab_kid === '' ? 'eab_kid' : 'eab_hmac_key'),
            expected: `set when \`acme.${acme.eab_kid === '' ? 'eab_hmac_key' : 'eab_kid'}\` is set`,
            got: EMPTY,
          },
        ]),
    ...(platform.tls && !acme.enabled && tls.cert_path === ''
      ? [{ path: ['platform', 'tls'], expected: 'false without `acme.enabled` or `tls.cert_path`', got: 'true' }]
      : []),
    // Without a public name, no certificate is ordered, and the platform's port would wait forever for a certificate.
    ...(platform.tls && acme.enabled && tls.cert_path === '' && !isOrderable(platform.public_url)
      ? [{ path: ['platform', 'public_url'], expected: 'an https URL with a public name when `platform.tls` is true' }]
      : []),
  ];
};

const isOrderable = (address: string): boolean => {
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' && isIP(hostname.replace(/^\[|\]$/g, '')) === 0 && hostname.includes('.');
};

const isClearAfar = (address: string): boolean => {
  const { protocol, hostname } = new URL(address);
  return protocol !== 'https:' && !isLoopbackHost(hostname);
};

const platformFindings = ({ platform, server, database }: ServerConfig): Finding[] => {
  const needed = (path: string[], value: string, why: string): Finding[] =>
    value === '' ? [{ path, expected: `set when ${why}`, got: EMPTY }] : [];
  return [
    ...(database.direct_url.reveal() === ''
      ? []
      : needed(['database', 'url'], database.url.reveal(), '`database.direct_url` is set')),
    ...(platform.mail.transport === 'smtp'
      ? needed(['platform', 'mail', 'smtp_url'], platform.mail.smtp_url.reveal(), '`platform.mail.transport` is "smtp"')
      : []),
    ...(platform.billing.processor === 'stripe'
      ? (['stripe_secret_key', 'stripe_webhook_secret'] as const).flatMap((key) =>
          needed(
            ['platform', 'billing', key],
            platform.billing[key].reveal(),
            '`platform.billing.processor` is "stripe"',
          ),
        )
      : []),
    ...(server.platform_url === ''
      ? []
      : needed(
          ['server', 'platform_credential_file'],
          server.platform_credential_file,
          '`server.platform_url` is set',
        )),
  ];
};

/** Rejects the name of a sign-in provider that occurs twice. */
const loginFindings = ({ policy }: ServerConfig): Finding[] =>
  policy.login.flatMap((provider, index) => {
    const first = policy.login.findIndex(({ name }) => name === provider.name);
    if (first === index) return [];
    return [
      {
        path: ['policy', 'login', index, 'name'],
        expected: 'a unique name',
        got: `that of policy.login[${first}]`,
      },
    ];
  });

/** Checks `backup.dir`. Only the embedded database is backed up, and never into the data directory. */
const backupFindings = ({ backup, data_dir, database }: ServerConfig): Finding[] => {
  if (backup.dir === '') return [];
  const path = ['backup', 'dir'];
  if (database.url.reveal() !== '') {
    const expected = 'empty when `database.url` is set: only the embedded database is backed up (docs/backup.md)';
    return [{ path, expected }];
  }
  const below = relative(resolve(data_dir), resolve(backup.dir));
  const isInside = below === '' || !(below === '..' || below.startsWith(`..${sep}`));
  if (!isInside) return [];
  return [{ path, expected: 'outside of `data_dir`, because a backup has to survive the loss of that folder' }];
};
