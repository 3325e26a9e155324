import { loadServerConfig } from '@tunnel/config/server';
import { expect, it } from 'vitest';
import { domainSettings } from './domain-settings.ts';
import { addDomain } from './own-domains.ts';

const settingsOf = (overrides: object) => domainSettings(loadServerConfig({ env: {}, overrides }));

it('a server on localhost is local unless it has custom resolvers', () => {
  expect(settingsOf({}).isLocal).toBe(true);
  expect(settingsOf({ dns: { resolvers: ['127.0.0.1:5353'] } }).isLocal).toBe(false);
  expect(settingsOf({ server: { domain: 'tunnels.example.com' } }).isLocal).toBe(false);
});

it('a local server rejects own domains with the reason, before any database query', async () => {
  const context = { domains: settingsOf({}) } as Parameters<typeof addDomain>[0];
  const added = addDomain(context, { kind: 'user', userId: 'u' }, { name: 'shop.example.com' });
  await expect(added).rejects.toThrow('own domains need a public server: no DNS record can point to localhost');
});
