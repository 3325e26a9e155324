import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { temporaryDirectory } from '@tunnel/testkit';
import { describe, expect, onTestFinished, test } from 'vitest';
import { valueKeys } from '../layers/schema-walk.ts';
import { loadServerConfig, type ServerConfigSources } from './server-config.ts';
import { serverFileSchema } from './server-schema.ts';

const refusal = (sources: Partial<ServerConfigSources>): string => {
  try {
    loadServerConfig({ env: {}, ...sources });
  } catch (error) {
    return (error as Error).message;
  }
  return 'not refused';
};

describe('environment variables', () => {
  test('override the file and the defaults, and are parsed as TOML', () => {
    const { server, limits, load_balancing } = loadServerConfig({
      env: {
        TUNNEL_SERVER__CONTROL_PORT: '4440',
        TUNNEL_SERVER__DOMAIN: '"example.com"',
        TUNNEL_LIMITS__TCP_PORT_RANGE: '[1000, 2000]',
        TUNNEL_LOAD_BALANCING__ENABLED: 'true',
      },
      defaults: { server: { control_port: 1, api_port: 2 } },
    });
    expect(server).toMatchObject({ control_port: 4440, domain: 'example.com', api_port: 2 });
    expect(limits.tcp_port_range).toEqual([1000, 2000]);
    expect(load_balancing.enabled).toBe(true);
  });

  test('with a domain are converted to lower case, like the hosts compared with it', () => {
    expect(loadServerConfig({ env: { TUNNEL_SERVER__DOMAIN: 'Edge.Example.COM' } }).server.domain).toBe(
      'edge.example.com',
    );
  });

  test('that are not TOML are taken as plain text', () => {
    const config = loadServerConfig({
      env: {
        TUNNEL_DATA_DIR: '/var/lib/tunnel',
        TUNNEL_DATABASE__URL: 'postgres://tunnel@db/tunnel',
        TUNNEL_REGION__LOCATION: '',
        TUNNEL_REGION__NAME: 'x"\nother = "y',
      },
      overrides: { region: { name: 'Flag' } },
    });
    expect(config.data_dir).toBe('/var/lib/tunnel');
    expect(config.database.url.reveal()).toBe('postgres://tunnel@db/tunnel');
    expect(config.region).toMatchObject({ location: '', name: 'Flag' });
  });

  test('can also set plans and lists of tables', () => {
    const config = loadServerConfig({
      env: {
        TUNNEL_PLATFORM__PLANS__FREE__TUNNEL_LIMIT: '100',
        TUNNEL_AUTH__KEYS: `[{ account = "alice", sha256 = "${'a'.repeat(64)}" }]`,
      },
    });
    expect(config.platform.plans['free']).toMatchObject({ tunnel_limit: 100, allow_custom_subdomains: true });
    expect(config.auth.keys).toEqual([{ account: 'alice', sha256: 'a'.repeat(64), reserved: [], domains: [] }]);
  });

  test('with an unknown key are ignored', () => {
    const env = { TUNNEL_API_KEY: 'x', TUNNEL_SERVER: 'edge:4040', TUNNEL_SERVER__NOPE: '1', tunnel_data_dir: '/x' };
    expect(loadServerConfig({ env })).toEqual(loadServerConfig({ env: {} }));
  });

  test('with an invalid value are refused by name, and secret values are not repeated', () => {
    expect(refusal({ env: { TUNNEL_SERVER__CONTROL_PORT: 'many' } })).toBe(
      'TUNNEL_SERVER__CONTROL_PORT: `server.control_port` must be a whole number from 0 to 65535, got "many"',
    );
    expect(refusal({ env: { TUNNEL_AUTH__KEYS: '[{ account = "alice" }]' } })).toMatch(
      /^TUNNEL_AUTH__KEYS: `auth\.keys\[0\]\.sha256` is required: 64/,
    );
    expect(refusal({ env: { TUNNEL_AUTH__ADMIN_TOKEN: '12345678' } })).toBe(
      'TUNNEL_AUTH__ADMIN_TOKEN: `auth.admin_token` must be a string, got a number',
    );
  });

  test('with _FILE name a file with a secret, taken as plain text without the line break at its end', async () => {
    const directory = await temporaryDirectory();
    onTestFinished(() => directory.close());
    const file = join(directory.path, 'secret');
    writeFileSync(file, '12345678\n');
    const config = loadServerConfig({ env: { TUNNEL_AUTH__ADMIN_TOKEN_FILE: file, TUNNEL_DATABASE__URL_FILE: '' } });
    expect([config.auth.admin_token.reveal(), config.database.url.reveal()]).toEqual(['12345678', '']);
    expect(refusal({ env: { TUNNEL_DATABASE__URL_FILE: file } })).toBe(
      'TUNNEL_DATABASE__URL_FILE: `database.url` must be empty or a URL such as postgres://user:password@host/name, got a string',
    );
  });

  test('with _FILE are refused if the file cannot be read, or if the secret is also set directly', () => {
    const file = '/missing/secret';
    expect(refusal({ env: { TUNNEL_AUTH__ADMIN_TOKEN_FILE: file } })).toBe(
      `TUNNEL_AUTH__ADMIN_TOKEN_FILE: \`auth.admin_token\` must be in a readable file, got "${file}": no such file`,
    );
    expect(refusal({ env: { TUNNEL_AUTH__ADMIN_TOKEN_FILE: file, TUNNEL_AUTH__ADMIN_TOKEN: 'x' } })).toBe(
      'TUNNEL_AUTH__ADMIN_TOKEN: `auth.admin_token` must be unset while TUNNEL_AUTH__ADMIN_TOKEN_FILE is set, got a value',
    );
  });

  test('with _FILE exist only for secret keys', () => {
    const file = '/missing/secret';
    const env = { TUNNEL_SERVER__DOMAIN_FILE: file, TUNNEL_NOPE_FILE: file };
    expect(loadServerConfig({ env })).toEqual(loadServerConfig({ env: {} }));
    const keys = valueKeys(serverFileSchema);
    expect(keys.filter((key) => key.endsWith('_file') && keys.includes(key.slice(0, -'_file'.length)))).toEqual([]);
  });
});

describe('the loaded server config', () => {
  test('prefers flags over all other sources, and names the command line for an invalid flag', () => {
    const env = { TUNNEL_DATA_DIR: '/from/variable' };
    expect(loadServerConfig({ env, overrides: { data_dir: '/from/flag' } }).data_dir).toBe('/from/flag');
    expect(loadServerConfig({ env, overrides: { data_dir: undefined } }).data_dir).toBe('/from/variable');
    expect(refusal({ overrides: { data_dir: 5 } })).toMatch(/^command line: `data_dir` must be/);
  });

  test('is deeply frozen', () => {
    const config = loadServerConfig({ env: {} });
    for (const part of [config, config.server, config.limits.tcp_port_range, config.platform.plans['free']]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  test('never prints its secrets', () => {
    const env = {
      TUNNEL_AUTH__ADMIN_TOKEN: 'open-sesame',
      TUNNEL_DATABASE__URL: 'postgres://open-sesame@db/tunnel',
      TUNNEL_PLATFORM__MAIL__SMTP_URL: 'smtp://open-sesame@mail',
      TUNNEL_PLATFORM__BILLING__STRIPE_SECRET_KEY: 'open-sesame',
      TUNNEL_PLATFORM__BILLING__STRIPE_WEBHOOK_SECRET: 'open-sesame',
      TUNNEL_LOAD_BALANCING__ALERT_SECRET: 'open-sesame',
    };
    const config = loadServerConfig({ env });
    expect(config.auth.admin_token.reveal()).toBe('open-sesame');
    expect(inspect(config, { depth: 9 }) + JSON.stringify(config)).not.toContain('open-sesame');
  });
});

describe('the URL of the mail server', () => {
  const load = (smtp_url: string) => loadServerConfig({ env: {}, overrides: { platform: { mail: { smtp_url } } } });

  test.each([
    'smtp://mail.test',
    'smtps://mail.test:465/',
    'smtp://[::1]:25',
    'smtp://user:p%40ss%2F%23@mail.test:587?tls.servername=mx.test',
    'smtp://user:p@ss:100%@mail.test:587',
    '',
  ])('is accepted: %s', (url) => {
    expect(load(url).platform.mail.smtp_url.reveal()).toBe(url);
  });

  test.each([
    ...['http://mail.test', 'smtp://', 'smtp://?x', 'smtp://user@', 'smtp://mail.test:99999', 'smtp://:587'],
    ...['smtp://user:12/34@mail.test', 'smtp://user:12?34@mail.test', 'smtp://user:12#34@mail.test'],
    ...[
      'smtp://user:a/b@mail.test',
      'smtp://user:a#b@mail.test',
      'smtp://us\ner:pw@mail.test',
      'smtp://u:p\u007f@m.test',
    ],
  ])('is refused if it names no host, or if the password would end the host: %j', (url) => {
    expect(() => load(url)).toThrow(/must be empty or a URL such as smtp:.*%2F.*, got a string/);
  });
});

describe('an invalid source', () => {
  test('is named with the reason if its file cannot be read', async () => {
    const directory = await temporaryDirectory();
    expect(refusal({ file: '/no/such/server.toml' })).toBe('cannot read /no/such/server.toml: no such file');
    expect(refusal({ file: directory.path })).toBe(`cannot read ${directory.path}: it is a directory`);
    await directory.close();
  });

  test('is refused if its value replaces a whole table', () => {
    expect(refusal({ env: { TUNNEL_SERVER__HOST: '::1' }, defaults: { server: 5 } })).toBe(
      'defaults: `server` must be a table, got 5',
    );
  });
});

describe('[telemetry]', () => {
  const telemetry = (given: object): string => refusal({ overrides: { telemetry: given } });

  test.each([
    ['', ''],
    ['http://collector:4318', ''],
    ['https://collector.example/tenant/', 'api-key=1,x-team=edge'],
  ])('accepts the endpoint "%s" with the headers "%s"', (otlp_endpoint, otlp_headers) => {
    expect(telemetry({ otlp_endpoint, otlp_headers })).toBe('not refused');
  });

  test.each([
    'collector:4318',
    'grpc://collector:4317',
    'http://',
    'http://user:password@collector:4318',
    'http://collector:4318/?key=1',
    'http://collector:4318/#part',
  ])('rejects the endpoint %s with the expected form', (otlp_endpoint) => {
    expect(telemetry({ otlp_endpoint })).toContain(
      '`telemetry.otlp_endpoint` must be an http or https URL without a user name or a query, or an empty string',
    );
  });

  test.each([-0.1, 1.1, '0.5', Number.NaN])('rejects the ratio %s', (sample_ratio) => {
    expect(telemetry({ sample_ratio })).toContain('`telemetry.sample_ratio` must be a number from 0 to 1');
  });

  test('rejects a malformed header list without showing it', () => {
    const message = telemetry({ otlp_headers: 'very-secret' });
    expect(message).toContain('`telemetry.otlp_headers` must be a list such as "name=value,name=value"');
    expect(message).not.toContain('very-secret');
  });

  test('reads the headers from a file named by a variable, and never shows them', async () => {
    const folder = await temporaryDirectory();
    onTestFinished(() => folder.close());
    const file = join(folder.path, 'headers');
    writeFileSync(file, 'api-key=very-secret\n');
    const config = loadServerConfig({ env: { TUNNEL_TELEMETRY__OTLP_HEADERS_FILE: file } });
    expect(config.telemetry.otlp_headers.reveal()).toBe('api-key=very-secret');
    expect(inspect(config, { depth: 9 }) + JSON.stringify(config)).not.toContain('very-secret');
  });
});
