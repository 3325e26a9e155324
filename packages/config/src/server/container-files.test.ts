// The files in deploy/container and deploy/compose agree with the configuration: keys, ports, secrets and time limits.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { valueKeys } from '../layers/schema-walk.ts';
import { platformHostAtEdge } from './platform-host.ts';
import { loadServerConfig } from './server-config.ts';
import { type ServerConfig, serverFileSchema } from './server-schema.ts';
import { configWarnings } from './server-warnings.ts';

const DEPLOY = join(import.meta.dirname, '../../../../deploy');
const read = (path: string): string => readFileSync(join(DEPLOY, path), 'utf8');

const CONTAINERFILE = read('container/Containerfile').replaceAll('\\\n', ' ');

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly healthcheck: { readonly test?: readonly string[] };
  readonly stop_grace_period?: string;
  readonly pull_policy?: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** The values of .env.example, as Compose reads them. */
const VALUES = new Map(
  read('compose/.env.example')
    .split('\n')
    .filter((line) => /^\w+=/.test(line))
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
);

const TEXTS = ['compose/compose.yml', 'compose/compose.client.yml'].map(read);
const [server, client] = TEXTS.map(
  (text) => parse(text.replaceAll(/\$\{(\w+):\?\}/g, (_, name: string) => VALUES.get(name) ?? 'unset')) as Compose,
) as [Compose, Compose];

/** The variables that the image of the server sets. */
const imageEnv = (): Record<string, string> => {
  const words = [...CONTAINERFILE.matchAll(/^ENV (.*)$/gm)].flatMap(([, text = '']) => text.trim().split(/\s+/));
  return Object.fromEntries(words.map((word) => word.split('=') as [string, string]));
};

/** The configuration in a container of the image, with a file for each secret. */
const configOf = (environment: Readonly<Record<string, string>> = {}): ServerConfig => {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-secrets-'));
  const secrets: Record<string, string> = {
    'database-url': 'postgres://tunnel:x@postgres/tunnel',
    'smtp-url': 'smtp://mail',
  };
  const given = Object.entries({ ...imageEnv(), ...environment }).map(([name, value]) => {
    const secret = /^\/run\/secrets\/([\w-]+)$/.exec(value)?.[1];
    if (secret === undefined) return [name, value];
    writeFileSync(join(folder, secret), `${secrets[secret]}\n`);
    return [name, join(folder, secret)];
  });
  try {
    return loadServerConfig({ env: Object.fromEntries(given) as Record<string, string> });
  } finally {
    rmSync(folder, { recursive: true });
  }
};

const rangeOf = ([from, to]: readonly [number, number]): string => `${from}-${to}`;

const keyOf = (variable: string): string =>
  variable
    .replace(/^TUNNEL_/, '')
    .toLowerCase()
    .replaceAll('__', '.');

test('every TUNNEL_ variable of the image and the compose file sets a key of server.toml', () => {
  const keys = new Set([...valueKeys(serverFileSchema), 'platform.plans.free.tunnel_limit']);
  const names = Object.keys({ ...imageEnv(), ...server.services['server']?.environment });
  const unknown = names
    .filter((name) => name.startsWith('TUNNEL_'))
    .filter((name) => !keys.has(keyOf(name)) && !keys.has(keyOf(name).replace(/_file$/, '')));
  expect(names.length).toBeGreaterThan(15);
  expect(unknown).toEqual([]);
});

describe('the image of the server', () => {
  const config = configOf();
  const exposed = (/^EXPOSE (.*)$/m.exec(CONTAINERFILE)?.[1] ?? '').split(' ');

  test('exposes the ports that the server opens in the container, all above 1024', () => {
    const { http_port, https_port, control_port } = config.server;
    expect(exposed).toEqual([
      ...[http_port, https_port, control_port, config.platform.port].map(String),
      ...['tcp', 'udp'].map((protocol) => `${config.dns.port}/${protocol}`),
      rangeOf(config.limits.tcp_port_range),
      `${rangeOf(config.limits.udp_port_range)}/udp`,
    ]);
    for (const port of exposed) expect(Number.parseInt(port, 10)).toBeGreaterThan(1024);
  });

  test('listens on all addresses of the container, with the edge API and the metrics on loopback', () => {
    expect(config.server).toMatchObject({ host: '0.0.0.0', api_host: '', metrics_host: '127.0.0.1' });
    expect(config.platform).toMatchObject({ host: '0.0.0.0', sign_up: 'invite' });
    expect(config.data_dir).toBe('/data');
  });
});

describe('the compose file of the server', () => {
  const service = server.services['server'] as Service;
  const config = configOf(service.environment);

  test('is a complete configuration, with a warning only about payments', () => {
    expect(configWarnings(config, 'stack').map(({ key }) => key)).toEqual(['platform.billing.processor']);
    expect(config.database.url.reveal()).toBe('postgres://tunnel:x@postgres/tunnel');
    expect(Object.keys(server.services)).toContain(new URL(config.database.url.reveal()).hostname);
  });

  test('publishes the ports of the container, and the edge serves the dashboard at the public URL', () => {
    const address = VALUES.get('HATCHWAY_ADDRESS');
    const { public_http_port, http_port, public_https_port, https_port } = config.server;
    expect(service.ports).toEqual([
      `${address}:${public_http_port}:${http_port}`,
      `${address}:${public_https_port}:${https_port}`,
      ...['tcp', 'udp'].map((protocol) => `${address}:53:${config.dns.port}/${protocol}`),
      `${address}:${rangeOf(config.limits.tcp_port_range)}:${rangeOf(config.limits.tcp_port_range)}`,
      `${address}:${rangeOf(config.limits.udp_port_range)}:${rangeOf(config.limits.udp_port_range)}/udp`,
    ]);
    expect(platformHostAtEdge(config)).toBe(VALUES.get('HATCHWAY_DOMAIN'));
  });

  test('gives the server more time to stop than open connections have', () => {
    expect(Number.parseInt(service.stop_grace_period ?? '', 10)).toBeGreaterThan(config.server.drain_secs + 5);
  });
});

describe.each([
  ['compose.yml', server],
  ['compose.client.yml', client],
])('%s', (_, compose) => {
  const services = Object.values(compose.services);

  test('names a version of each image, and never pulls our images from a registry', () => {
    for (const { image, pull_policy } of services) {
      expect(image).toMatch(/^[\w./-]+:\d[\w.]*$/);
      if (image.startsWith('hatchway-')) expect(pull_policy).toBe('never');
    }
  });

  test('defines exactly the secrets and volumes that its services use', () => {
    const used = (list: readonly (readonly string[] | undefined)[]) =>
      list.flatMap((names) => (names ?? []).map((name) => name.split(':')[0] ?? '')).sort();
    expect(used(services.map(({ secrets }) => secrets))).toEqual(Object.keys(compose.secrets).sort());
    expect(used(services.map(({ volumes }) => volumes))).toEqual(Object.keys(compose.volumes).sort());
    for (const { file } of Object.values(compose.secrets)) expect(file).toMatch(/^\.\/secrets\//);
  });

  test('has the health check of the image', () => {
    const checks = [...CONTAINERFILE.matchAll(/^HEALTHCHECK .* CMD (\[.*\])$/gm)].map(([, text = '']) =>
      ['CMD', ...(JSON.parse(text) as string[])].join(' '),
    );
    const [own] = services.map(({ healthcheck }) => healthcheck.test?.join(' '));
    expect(checks).toContain(own);
  });
});

test('.env.example has exactly the values that the compose files need', () => {
  const needed = new Set(TEXTS.flatMap((text) => [...text.matchAll(/\$\{(\w+)/g)].map(([, name = '']) => name)));
  expect([...VALUES.keys()].sort()).toEqual([...needed].sort());
  expect(VALUES.size).toBe(6);
  expect([...VALUES.values()].filter((value) => value === '')).toEqual([]);
});
