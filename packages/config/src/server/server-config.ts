// server.toml, the environment and flags, laid over the defaults: one checked and frozen value.
import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
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
  /** Absent: `defaults`, the environment and `overrides` alone. */
  readonly file?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Laid below the file, above the built-in defaults. */
  readonly defaults?: object;
  /** Laid above all: the flags of the command line. */
  readonly overrides?: object;
}

/** Throws a `ConfigProblem` for the first thing that is wrong. */
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
  const [finding] = serverFindings(config);
  if (finding !== undefined) throw refuseFinding(source, finding);
  return config;
};

/** Strangers do not sign up at a public server that says nothing about it. */
const withDefaults = (parsed: ParsedServerConfig) => {
  const { platform } = parsed;
  const sign_up = platform.sign_up ?? (isLoopbackConfig(parsed) ? 'open' : 'invite');
  return { ...parsed, platform: { ...platform, sign_up } };
};

/** The name of the config file that a server keeps in its data directory. */
export const SERVER_FILE = 'server.toml';

/**
 * The config file in the data directory, which every command reads when no other file is named. `dataDir`: from the command line, else the
 * variable or the default counts. undefined: that directory has no such file.
 */
export const findServerFile = (env: NodeJS.ProcessEnv, dataDir?: string): string | undefined => {
  const named = dataDir ?? envLayer(serverFileSchema, env).tree['data_dir'];
  const file = join(typeof named === 'string' && named !== '' ? named : DEFAULT_DATA_DIR, SERVER_FILE);
  return existsSync(file) ? file : undefined;
};

// What one key of server.toml demands of another.

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
];

const tlsFindings = ({ tls }: ServerConfig): Finding[] => {
  if ((tls.cert_path === '') === (tls.key_path === '')) return [];
  const [missing, given] =
    tls.cert_path === '' ? (['cert_path', 'key_path'] as const) : (['key_path', 'cert_path'] as const);
  return [{ path: ['tls', missing], expected: `given too when \`tls.${given}\` is`, got: EMPTY }];
};

/** Its authority vouches for names of this machine alone, and for nothing that files say otherwise. */
const localCaFindings = ({ tls, server }: ServerConfig): Finding[] => {
  if (!tls.local_ca) return [];
  const path = ['tls', 'local_ca'];
  if (tls.cert_path !== '') return [{ path, expected: 'false when `tls.cert_path` is given', got: 'true' }];
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
    // Its answers are believed: over the network nobody may write them.
    ...(isClearAfar(acme.directory)
      ? [{ path: path('directory'), expected: 'an https URL, or a URL of this machine' }]
      : []),
    ...(acme.dns === 'exec' && acme.dns_exec === ''
      ? [{ path: path('dns_exec'), expected: 'given when `acme.dns` is "exec"', got: EMPTY }]
      : []),
    ...((acme.eab_kid === '') === (eabKey === '')
      ? []
      : [
          {
            path: path(acme.eab_kid === '' ? 'eab_kid' : 'eab_hmac_key'),
            expected: `given too when \`acme.${acme.eab_kid === '' ? 'eab_hmac_key' : 'eab_kid'}\` is`,
            got: EMPTY,
          },
        ]),
    ...(platform.tls && !acme.enabled && tls.cert_path === ''
      ? [{ path: ['platform', 'tls'], expected: 'false without `acme.enabled` or `tls.cert_path`', got: 'true' }]
      : []),
    // Its port would wait for a certificate that nobody orders.
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
    value === '' ? [{ path, expected: `given when ${why}`, got: EMPTY }] : [];
  return [
    ...(database.direct_url.reveal() === ''
      ? []
      : needed(['database', 'url'], database.url.reveal(), '`database.direct_url` is')),
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
      : needed(['server', 'platform_credential_file'], server.platform_credential_file, '`server.platform_url` is')),
  ];
};

/** One name cannot be two providers. */
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
