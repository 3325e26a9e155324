import { systemClock } from '@tunnel/runtime';
import { startDnsServer } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { openDomainDns } from './domain-dns.ts';

it('domain lookups use the configured resolvers, and a lookup pending on close gets no answer', async () => {
  const dns = await startDnsServer();
  dns.set('shop.test', 'A', '192.0.2.1');
  const lookups = await openDomainDns({ resolvers: [dns.address], serverDomain: 'tunnels.test' }, systemClock);
  expect(await lookups.addresses('shop.test')).toEqual({ kind: 'found', values: ['192.0.2.1'] });
  const late = lookups.addresses('shop.test');
  lookups.close();
  expect(await late).toMatchObject({ kind: 'no-answer' });
  await dns.close();
});
