import { describe, expect, it } from 'vitest';
import { loadServerConfig } from './server-config.ts';
import { type ConfiguredParts, configWarnings, isPublic, likelyParts } from './server-warnings.ts';

const BALANCED = { load_balancing: { enabled: true } };
const PUBLIC_EDGE = { server: { host: '0.0.0.0' }, ...BALANCED };
const BEHIND_PROXY = { ...PUBLIC_EDGE, platform: { public_url: 'https://tunnels.example.com' } };
const KEY = { account: 'alice', sha256: 'a'.repeat(64) };
const SMTP = { transport: 'smtp', smtp_url: 'smtp://mail.example.com' };
const STRIPE = { processor: 'stripe', stripe_secret_key: 'sk', stripe_webhook_secret: 'wh' };

const configOf = (overrides: object) => loadServerConfig({ env: {}, overrides });
const keysOf = (overrides: object, parts: ConfiguredParts = 'stack'): string[] =>
  configWarnings(configOf(overrides), parts).map(({ key }) => key);

it('a loopback server with groups gets no warnings', () => {
  expect(keysOf(BALANCED)).toEqual([]);
  expect(keysOf({ ...BALANCED, server: { host: '::1' }, platform: { host: 'localhost' } })).toEqual([]);
});

it('a fully configured public server gets no warnings', () => {
  const platform = { public_url: 'https://tunnels.example.com', mail: SMTP, billing: STRIPE };
  expect(keysOf({ ...PUBLIC_EDGE, platform })).toEqual([]);
});

describe('the warning for platform.host', () => {
  it('is given if the dashboard is on loopback while tunnels are public', () => {
    expect(keysOf(PUBLIC_EDGE)).toContain('platform.host');
    expect(keysOf({ ...PUBLIC_EDGE, platform: { host: '0.0.0.0' } })).not.toContain('platform.host');
    const inClear = { public_url: 'http://tunnels.example.com:8080' };
    expect(keysOf({ ...PUBLIC_EDGE, platform: inClear })).toContain('platform.host');
  });

  it('is not given for a dashboard behind a proxy', () => {
    expect(keysOf(BEHIND_PROXY)).not.toContain('platform.host');
    const inClear = { public_url: 'http://tunnels.example.com', trusted_proxies: ['127.0.0.1'] };
    expect(keysOf({ ...PUBLIC_EDGE, platform: inClear })).not.toContain('platform.host');
  });

  it('is not given for an edge or a platform on its own', () => {
    expect(keysOf(PUBLIC_EDGE, 'edge')).toEqual([]);
    expect(keysOf(PUBLIC_EDGE, 'platform')).toEqual([]);
  });
});

describe('the warning for platform.public_url', () => {
  it.each(['http://localhost:8080', 'http://127.0.0.1:8080', 'https://[::1]'])(
    'is given for %s with a public host',
    (url) => {
      const there = { host: '0.0.0.0', public_url: url };
      expect(keysOf({ ...BALANCED, platform: there })).toContain('platform.public_url');
      expect(keysOf({ platform: there }, 'platform')).toContain('platform.public_url');
      expect(keysOf({ ...PUBLIC_EDGE, platform: { public_url: url } })).toContain('platform.public_url');
    },
  );

  it("is given for a port that differs from the dashboard's", () => {
    const [warning] = configWarnings(configOf({ ...BALANCED, platform: { port: 9000 } }), 'stack');
    expect(warning).toEqual({
      key: 'platform.public_url',
      text: 'links point to port 8080, but the dashboard listens on port 9000: set platform.public_url = "http://localhost:9000"',
    });
    const plain = { host: '0.0.0.0', public_url: 'http://tunnels.example.com' };
    expect(keysOf({ ...BALANCED, platform: plain })).toContain('platform.public_url');
    expect(keysOf({ ...BALANCED, platform: { ...plain, port: 80 } })).not.toContain('platform.public_url');
  });

  it("is not given behind a proxy, or if the dashboard's port is random", () => {
    expect(keysOf(BEHIND_PROXY)).not.toContain('platform.public_url');
    expect(keysOf({ ...BALANCED, platform: { port: 0 } })).toEqual([]);
  });
});

it.each([
  ['platform.mail.transport', { mail: SMTP }],
  ['platform.billing.processor', { billing: STRIPE }],
] as const)('%s gets a warning on a public server if it is only a stand-in', (key, real) => {
  const { platform } = BEHIND_PROXY;
  expect(keysOf(BEHIND_PROXY)).toContain(key);
  expect(keysOf({ platform }, 'platform')).toContain(key);
  expect(keysOf({ ...BEHIND_PROXY, platform: { ...platform, ...real } })).not.toContain(key);
  expect(keysOf(BEHIND_PROXY, 'edge')).toEqual([]);
});

it('a public server with open sign-up gets a warning', () => {
  const { platform } = BEHIND_PROXY;
  const open = { ...BEHIND_PROXY, platform: { ...platform, sign_up: 'open' } };
  expect(keysOf(open)).toContain('platform.sign_up');
  expect(keysOf(open, 'platform')).toContain('platform.sign_up');
  expect(keysOf(open, 'edge')).not.toContain('platform.sign_up');
  expect(keysOf(BEHIND_PROXY)).not.toContain('platform.sign_up');
  expect(keysOf({ ...BALANCED, platform: { sign_up: 'open' } })).toEqual([]);
});

it('auth keys in the file get a warning if a platform ignores them', () => {
  const auth = { keys: [KEY] };
  expect(keysOf({ ...BALANCED, auth })).toEqual(['auth.keys']);
  expect(keysOf({ ...BALANCED, auth }, 'edge')).toEqual([]);
  const server = { platform_url: 'https://platform.example.com', platform_credential_file: '/x' };
  expect(keysOf({ ...BALANCED, auth, server }, 'edge')).toEqual(['auth.keys']);
});

it('a disabled group feature gets a warning, except on a platform on its own', () => {
  expect(keysOf({})).toEqual(['load_balancing.enabled']);
  expect(keysOf({}, 'edge')).toEqual(['load_balancing.enabled']);
  expect(keysOf({}, 'platform')).toEqual([]);
});

it('each config warning is one line that names its key', () => {
  const all = configWarnings(configOf({ server: { host: '0.0.0.0' }, auth: { keys: [KEY] } }), 'stack');
  expect(all).toHaveLength(6);
  for (const { key, text } of all) expect(text).toMatch(new RegExp(`^[^\\n]*${key.replaceAll('.', '\\.')}[^\\n]*$`));
});

it('a config with a remote platform is for an edge, any other config for a full server', () => {
  const server = { platform_url: 'https://platform.example.com', platform_credential_file: '/x' };
  expect([likelyParts(configOf({})), likelyParts(configOf({ server }))]).toEqual(['stack', 'edge']);
});

it('a server counts as public by a listening address or by its public_url', () => {
  expect(isPublic(configOf({}), 'stack')).toBe(false);
  expect(isPublic(configOf(PUBLIC_EDGE), 'stack')).toBe(true);
  expect(isPublic(configOf(PUBLIC_EDGE), 'platform')).toBe(false);
  expect(isPublic(configOf({ platform: { host: '::' } }), 'platform')).toBe(true);
  expect(isPublic(configOf({ platform: { public_url: 'https://tunnels.example.com' } }), 'stack')).toBe(true);
});
