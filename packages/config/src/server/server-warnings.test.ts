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

it('a server for this machine with groups has nothing to warn of', () => {
  expect(keysOf(BALANCED)).toEqual([]);
  expect(keysOf({ ...BALANCED, server: { host: '::1' }, platform: { host: 'localhost' } })).toEqual([]);
});

it('a public server that is whole has nothing to warn of', () => {
  const platform = { public_url: 'https://tunnels.example.com', mail: SMTP, billing: STRIPE };
  expect(keysOf({ ...PUBLIC_EDGE, platform })).toEqual([]);
});

describe('the dashboard', () => {
  it('is on loopback while tunnels are public', () => {
    expect(keysOf(PUBLIC_EDGE)).toContain('platform.host');
    expect(keysOf({ ...PUBLIC_EDGE, platform: { host: '0.0.0.0' } })).not.toContain('platform.host');
    const inClear = { public_url: 'http://tunnels.example.com:8080' };
    expect(keysOf({ ...PUBLIC_EDGE, platform: inClear })).toContain('platform.host');
  });

  it('may be on loopback behind a proxy', () => {
    expect(keysOf(BEHIND_PROXY)).not.toContain('platform.host');
    const inClear = { public_url: 'http://tunnels.example.com', trusted_proxies: ['127.0.0.1'] };
    expect(keysOf({ ...PUBLIC_EDGE, platform: inClear })).not.toContain('platform.host');
  });

  it('is none of an edge, and a platform alone is where it says', () => {
    expect(keysOf(PUBLIC_EDGE, 'edge')).toEqual([]);
    expect(keysOf(PUBLIC_EDGE, 'platform')).toEqual([]);
  });
});

describe('public_url', () => {
  it.each(['http://localhost:8080', 'http://127.0.0.1:8080', 'https://[::1]'])('is %s with a public host', (url) => {
    const there = { host: '0.0.0.0', public_url: url };
    expect(keysOf({ ...BALANCED, platform: there })).toContain('platform.public_url');
    expect(keysOf({ platform: there }, 'platform')).toContain('platform.public_url');
    expect(keysOf({ ...PUBLIC_EDGE, platform: { public_url: url } })).toContain('platform.public_url');
  });

  it('has another port than the one served', () => {
    const [warning] = configWarnings(configOf({ ...BALANCED, platform: { port: 9000 } }), 'stack');
    expect(warning).toEqual({
      key: 'platform.public_url',
      text: 'links point to port 8080, but the dashboard listens on port 9000: set platform.public_url = "http://localhost:9000"',
    });
    const plain = { host: '0.0.0.0', public_url: 'http://tunnels.example.com' };
    expect(keysOf({ ...BALANCED, platform: plain })).toContain('platform.public_url');
    expect(keysOf({ ...BALANCED, platform: { ...plain, port: 80 } })).not.toContain('platform.public_url');
  });

  it('may have any port when a proxy serves it, or when the port is any free one', () => {
    expect(keysOf(BEHIND_PROXY)).not.toContain('platform.public_url');
    expect(keysOf({ ...BALANCED, platform: { port: 0 } })).toEqual([]);
  });
});

it.each([
  ['platform.mail.transport', { mail: SMTP }],
  ['platform.billing.processor', { billing: STRIPE }],
] as const)('%s stands in for the real one on a public server', (key, real) => {
  const { platform } = BEHIND_PROXY;
  expect(keysOf(BEHIND_PROXY)).toContain(key);
  expect(keysOf({ platform }, 'platform')).toContain(key);
  expect(keysOf({ ...BEHIND_PROXY, platform: { ...platform, ...real } })).not.toContain(key);
  expect(keysOf(BEHIND_PROXY, 'edge')).toEqual([]);
});

it('a public server where anyone can sign up', () => {
  const { platform } = BEHIND_PROXY;
  const open = { ...BEHIND_PROXY, platform: { ...platform, sign_up: 'open' } };
  expect(keysOf(open)).toContain('platform.sign_up');
  expect(keysOf(open, 'platform')).toContain('platform.sign_up');
  expect(keysOf(open, 'edge')).not.toContain('platform.sign_up');
  expect(keysOf(BEHIND_PROXY)).not.toContain('platform.sign_up');
  expect(keysOf({ ...BALANCED, platform: { sign_up: 'open' } })).toEqual([]);
});

it('keys of the file beside a platform are ignored there', () => {
  const auth = { keys: [KEY] };
  expect(keysOf({ ...BALANCED, auth })).toEqual(['auth.keys']);
  expect(keysOf({ ...BALANCED, auth }, 'edge')).toEqual([]);
  const server = { platform_url: 'https://platform.example.com', platform_credential_file: '/x' };
  expect(keysOf({ ...BALANCED, auth, server }, 'edge')).toEqual(['auth.keys']);
});

it('groups are off', () => {
  expect(keysOf({})).toEqual(['load_balancing.enabled']);
  expect(keysOf({}, 'edge')).toEqual(['load_balancing.enabled']);
  expect(keysOf({}, 'platform')).toEqual([]);
});

it('each warning is one line that names its key', () => {
  const all = configWarnings(configOf({ server: { host: '0.0.0.0' }, auth: { keys: [KEY] } }), 'stack');
  expect(all).toHaveLength(6);
  for (const { key, text } of all) expect(text).toMatch(new RegExp(`^[^\\n]*${key.replaceAll('.', '\\.')}[^\\n]*$`));
});

it('a file with a platform elsewhere is for an edge, else for a stack', () => {
  const server = { platform_url: 'https://platform.example.com', platform_credential_file: '/x' };
  expect([likelyParts(configOf({})), likelyParts(configOf({ server }))]).toEqual(['stack', 'edge']);
});

it('a server is public by a listener, or by its address', () => {
  expect(isPublic(configOf({}), 'stack')).toBe(false);
  expect(isPublic(configOf(PUBLIC_EDGE), 'stack')).toBe(true);
  expect(isPublic(configOf(PUBLIC_EDGE), 'platform')).toBe(false);
  expect(isPublic(configOf({ platform: { host: '::' } }), 'platform')).toBe(true);
  expect(isPublic(configOf({ platform: { public_url: 'https://tunnels.example.com' } }), 'stack')).toBe(true);
});
