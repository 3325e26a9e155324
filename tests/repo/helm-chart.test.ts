// The Helm chart without Helm: values, schema, templates and server.toml name the same keys. `npm run try:helm` renders the chart.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { isConcealedAt, valueKeys } from '../../packages/config/src/layers/schema-walk.ts';
import { serverFileSchema } from '../../packages/config/src/server/server-schema.ts';
import { ROOT } from './checkout.fixture.ts';

const CHART = 'deploy/helm/hatchway';
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

interface JsonSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
}

const values = parse(read(`${CHART}/values.yaml`)) as Record<string, unknown>;
const schema = JSON.parse(read(`${CHART}/values.schema.json`)) as JsonSchema;
const templates = Object.fromEntries(
  readdirSync(join(ROOT, CHART, 'templates')).map((name) => [name, read(`${CHART}/templates/${name}`)]),
);
const helpers = templates['_helpers.tpl'] ?? '';

/** Paths of the keys that a schema names, down to objects with other keys. */
const schemaKeys = ({ properties }: JsonSchema, prefix = ''): string[] =>
  Object.entries(properties ?? {}).flatMap(([key, inner]) =>
    inner.properties === undefined ? [`${prefix}${key}`] : schemaKeys(inner, `${prefix}${key}.`),
  );

/** Paths of the keys that values.yaml contains, down to the same depth. */
const keysOf = (table: Readonly<Record<string, unknown>>, { properties = {} }: JsonSchema, prefix = ''): string[] =>
  Object.entries(table).flatMap(([key, value]) => {
    const inner = properties[key];
    if (inner?.properties === undefined) return [`${prefix}${key}`];
    return keysOf(value as Record<string, unknown>, inner, `${prefix}${key}.`);
  });

/** Keys of server.toml that the chart sets itself, so that values cannot contradict its volumes, ports and Services. */
const SET_BY_CHART = [
  ...['data_dir', 'tls.cert_path', 'tls.key_path', 'acme.storage_key_file', 'dns.host', 'dns.port', 'udp.ports'],
  ...['limits.tcp_port_range', 'limits.udp_port_range'],
  ...['host', 'api_host', 'metrics_host', 'domain', 'drain_secs', 'platform_url', 'platform_credential_file'].map(
    (key) => `server.${key}`,
  ),
  ...['http_port', 'https_port', 'control_port', 'api_port'].map((key) => `server.${key}`),
  ...['metrics_port', 'api_url', 'allow_insecure_link'].map((key) => `server.${key}`),
  ...['host', 'port', 'tls', 'public_url', 'secret_key_file', 'trusted_proxies'].map((key) => `platform.${key}`),
  ...['platform.mail.transport', 'platform.mail.from', 'platform.billing.processor'],
];
/** Keys that the chart sets by variables. */
const SET_BY_VARIABLES = ['server.public_http_port', 'server.public_https_port'];
/** Keys without a use in a cluster. */
const WITHOUT_USE = ['tls.local_ca', 'platform.billing.simulator_port'];

const serverKeys = valueKeys(serverFileSchema);
const isSecret = (key: string): boolean => !key.includes('[') && isConcealedAt(serverFileSchema, key.split('.'));

/** Paths of `config` in the schema, in the form of valueKeys(). */
const configKeys = ({ properties, additionalProperties, items }: JsonSchema, prefix = ''): string[] => {
  if (items?.properties !== undefined) return configKeys(items, `${prefix}[]`);
  if (typeof additionalProperties === 'object') return configKeys(additionalProperties, `${prefix}.*`);
  if (properties === undefined) return [prefix];
  return Object.entries(properties).flatMap(([key, inner]) =>
    configKeys(inner, prefix === '' ? key : `${prefix}.${key}`),
  );
};

/** The schema of a key of `config`, whose path is in the form of valueKeys(). */
const schemaAt = (path: string): JsonSchema =>
  path
    .replaceAll('[]', '.[]')
    .split('.')
    .reduce<JsonSchema>((at, name) => {
      if (name === '[]') return at.items ?? {};
      if (name === '*') return typeof at.additionalProperties === 'object' ? at.additionalProperties : {};
      return at.properties?.[name] ?? {};
    }, schema.properties?.['config'] ?? {});

describe('values of the chart', () => {
  it('are the same in values.yaml and values.schema.json, and no other value is accepted', () => {
    const { config: _, ...others } = schema.properties ?? {};
    const { config: __, ...given } = values;
    const { properties } = { properties: others };
    const documented = schemaKeys({ properties }).filter((key) => key !== 'global');
    expect(keysOf(given, { properties }).sort()).toEqual(documented.sort());
    const tables = JSON.stringify(schema, (key, value: unknown) =>
      key === 'if' || key === 'then' || key === 'allOf' ? undefined : value,
    );
    expect(tables.match(/"type":"object","properties"/g)).toBeNull();
  });

  it('are all used by a template, and templates use no other value', () => {
    const text = Object.values(templates).join('\n');
    const { config: _, ...given } = values;
    for (const key of keysOf(given, schema)) {
      const name = key.split('.').at(-1) ?? '';
      expect(text.includes(`.${name}`) ? key : `${key} is unused`).toBe(key);
    }
    for (const [, path = ''] of text.matchAll(/\.Values\.([\w.]+)/g)) {
      const found = path
        .split('.')
        .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], values);
      expect(found === undefined ? `${path} is unknown` : path).toBe(path);
    }
  });

  it('contain no secret: every Secret is named by the operator', () => {
    expect(Object.values(templates).filter((text) => /^kind: Secret$/m.test(text))).toEqual([]);
    for (const key of keysOf(values, schema).filter((one) => one.endsWith('ecretName')))
      expect(key.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], values)).toBe('');
  });
});

describe('settings of server.toml in the chart', () => {
  const inConfig = configKeys(schema.properties?.['config'] ?? {});
  const tables = new Set(inConfig.map((key) => key.split('.')[0]));

  it('are keys of server.toml, and no secret', () => {
    const unknown = [...inConfig, ...SET_BY_CHART, ...SET_BY_VARIABLES].filter((key) => !serverKeys.includes(key));
    expect(unknown).toEqual([]);
    expect(inConfig.filter(isSecret)).toEqual([]);
  });

  it('are complete: a new key of server.toml belongs into `config` of values.schema.json, or into SET_BY_CHART above', () => {
    const missing = serverKeys.filter(
      (key) => tables.has(key.split('.')[0] ?? '') && !inConfig.includes(key) && !SET_BY_CHART.includes(key),
    );
    expect(missing.filter((key) => !isSecret(key) && ![...SET_BY_VARIABLES, ...WITHOUT_USE].includes(key))).toEqual([]);
  });

  it('have the types of server.toml', () => {
    const key = { account: 'a', sha256: '0'.repeat(64) };
    const provider = { name: 'a', issuer: 'https://a.test', client_id: 'a' };
    const plan = { tunnel_limit: 1, reserved_limit: 1, domain_limit: 1 };
    const example = {
      auth: { keys: [key] },
      policy: { login: [provider] },
      platform: { sign_up: 'open', plans: { a: plan } },
    };
    const parsed: unknown = serverFileSchema.parse(example);
    for (const path of inConfig) {
      const names = path.replaceAll('[]', '.0').replaceAll('*', 'a').split('.');
      const value = names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], parsed);
      const { type } = schemaAt(path);
      const actual = Array.isArray(value) ? 'array' : typeof value;
      expect(`${path}: ${type === 'integer' ? 'number' : (type ?? actual)}`).toBe(`${path}: ${actual}`);
    }
  });

  it('that the chart sets itself are set by its templates', () => {
    for (const key of SET_BY_CHART) {
      const name = key.split('.').at(-1) ?? '';
      expect(new RegExp(`"${name}"|^ *${name}:`, 'm').test(helpers) ? key : `${key} is not set`).toBe(key);
    }
  });

  it('arrive by variables that exist', () => {
    const variables = Object.values(templates).flatMap((text) => text.match(/\bTUNNEL_[A-Z_]+/g) ?? []);
    const known = serverKeys.map((key) => `TUNNEL_${key.replaceAll('.', '__').toUpperCase()}`);
    expect(variables.filter((name) => name !== 'TUNNEL_API_KEY' && !known.includes(name))).toEqual([]);
  });
});

describe('the chart', () => {
  it('has the version of the repository', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    const chart = read(`${CHART}/Chart.yaml`).split('\n');
    expect(chart).toContain(`version: ${version}`);
    expect(chart).toContain(`appVersion: "${version}"`);
  });

  it('probes paths that exist: liveness asks the process, readiness the database', () => {
    const probes = (name: string) =>
      [...(templates[name] ?? '').matchAll(/(\w+)Probe:\n +httpGet: \{ path: ([\w/]+)/g)].map(([, kind, path]) => [
        kind,
        path,
      ]);
    expect(probes('platform.yaml')).toEqual([
      ['liveness', '/health'],
      ['readiness', '/health/db'],
      ['startup', '/health'],
    ]);
    expect(probes('edge.yaml')).toEqual([
      ['liveness', '/api/status'],
      ['readiness', '/api/status'],
      ['startup', '/api/status'],
    ]);
  });

  it('is described by docs/kubernetes.md, whose values exist', () => {
    const page = read('docs/kubernetes.md');
    const tables = page.split('\n\n').filter((text) => text.startsWith('| Value | Default |'));
    const rows = tables.flatMap((table) => [...table.matchAll(/^\| `([\w.]+)`/gm)].map(([, key = '']) => key));
    expect(rows.length).toBeGreaterThan(30);
    for (const key of rows) {
      const found = key
        .split('.')
        .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], values);
      expect(found === undefined ? `${key} is unknown` : key).toBe(key);
    }
  });
});
