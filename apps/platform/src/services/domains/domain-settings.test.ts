import { loadServerConfig } from '@tunnel/config/server';
import { expect, it } from 'vitest';
import { domainSettings } from './domain-settings.ts';
import { addDomain } from './own-domains.ts';

const settingsOf = (overrides: object) => domainSettings(loadServerConfig({ env: {}, overrides }));

it('a server for this machine is local, unless resolvers of its own lead there', () => {
  expect(settingsOf({}).isLocal).toBe(true);
  expect(settingsOf({ dns: { resolvers: ['127.0.0.1:5353'] } }).isLocal).toBe(false);
  expect(settingsOf({ server: { domain: 'tunnels.example.com' } }).isLocal).toBe(false);
});

it('a local server takes no own domain, and says why before it asks the database', async () => {
  const context = { domains: settingsOf({}) } as Parameters<typeof addDomain>[0];
  const added = addDomain(context, { kind: 'user', userId: 'u' }, { name: 'shop.example.com' });
  await expect(added).rejects.toThrow('own domains need a public server: no DNS record can point to localhost');
});
