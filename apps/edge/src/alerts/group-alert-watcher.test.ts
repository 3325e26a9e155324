import { loadServerConfig } from '@tunnel/config/server';
import { expect, it } from 'vitest';
import { memoryLog } from './alerts.fixture.ts';
import { decidePrivateAlertsFor, logPrivateAlerts } from './group-alert-watcher.ts';

const LOAD_BALANCING = { enabled: true };
const configOf = (overrides: object) =>
  loadServerConfig({ env: {}, overrides: { load_balancing: LOAD_BALANCING, ...overrides } });

it.each([
  ['the defaults', {}, true],
  ['another host', { server: { host: '0.0.0.0' } }, false],
  ['another domain', { server: { domain: 'tunnels.example' } }, false],
  ['a public platform', { platform: { public_url: 'https://console.example.net' } }, false],
  ['a proxy before the edge', { server: { trusted_proxies: ['127.0.0.1'] } }, false],
  ['a proxy before the platform', { platform: { trusted_proxies: ['127.0.0.1'] } }, false],
  [
    'another host that is told to allow them',
    { server: { host: '0.0.0.0' }, load_balancing: { ...LOAD_BALANCING, alert_allow_private: true } },
    true,
  ],
  ['the defaults, told not to', { load_balancing: { ...LOAD_BALANCING, alert_allow_private: false } }, false],
])(
  'with %s: the edge decides whether alerts may reach private addresses, and logs the reason at start',
  (_name, overrides, allowed) => {
    const config = configOf(overrides);
    expect(decidePrivateAlertsFor(config).allowed).toBe(allowed);
    const log = memoryLog();
    logPrivateAlerts(config, log.logger);
    expect(log.lines).toMatchObject([{ level: 'info', allowed, because: expect.stringMatching(/\w/) }]);
  },
);

it('no decision is logged while load balancing is off', () => {
  const log = memoryLog();
  logPrivateAlerts(configOf({ load_balancing: { enabled: false } }), log.logger);
  expect(log.lines).toEqual([]);
});
