import { expect, it } from 'vitest';
import { isLoopbackConfig } from './loopback-config.ts';
import { loadServerConfig } from './server-config.ts';

const configOf = (overrides: object) => loadServerConfig({ env: {}, overrides });

it('a config without a file counts as loopback', () => {
  expect(isLoopbackConfig(configOf({}))).toBe(true);
  expect(isLoopbackConfig(configOf({ server: { host: '::1' }, platform: { host: 'localhost' } }))).toBe(true);
});

it.each([
  { server: { host: '0.0.0.0' } },
  { platform: { host: '::' } },
  { server: { domain: 'tunnels.example.com' } },
  { platform: { public_url: 'https://tunnels.example.com' } },
  { platform: { trusted_proxies: ['127.0.0.1'] } },
  { server: { trusted_proxies: ['10.0.0.1'] } },
])('a single public setting makes a config non-loopback: %j', (overrides) => {
  expect(isLoopbackConfig(configOf(overrides))).toBe(false);
});

it('without a setting, sign-up is open on a loopback config and by invitation on any other', () => {
  const signUp = (overrides: object) => configOf(overrides).platform.sign_up;
  expect(signUp({})).toBe('open');
  expect(signUp({ server: { host: '0.0.0.0' } })).toBe('invite');
  expect(signUp({ platform: { public_url: 'https://tunnels.example.com' } })).toBe('invite');
  expect(signUp({ platform: { public_url: 'https://tunnels.example.com', sign_up: 'open' } })).toBe('open');
  expect(signUp({ platform: { sign_up: 'closed' } })).toBe('closed');
});
