import { Resolver } from 'node:dns/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DnsServer, startDnsServer } from './dns-server.ts';

let server: DnsServer;
let resolver: Resolver;

beforeEach(async () => {
  server = await startDnsServer();
  resolver = new Resolver({ timeout: 300, tries: 1 });
  resolver.setServers([server.address]);
});

afterEach(async () => {
  resolver.cancel();
  await server.close();
});

it('the DNS server answers in any letter case, and follows names as a resolver does', async () => {
  server.set('shop.test', 'A', '192.0.2.1', '192.0.2.2');
  server.set('shop.test', 'AAAA', '2001:db8::1');
  server.set('www.shop.test', 'CNAME', 'Shop.Test');
  server.set('*.wild.test', 'CNAME', 'shop.test');
  expect(await resolver.resolve4('SHOP.test')).toEqual(['192.0.2.1', '192.0.2.2']);
  expect(await resolver.resolve6('www.shop.test')).toEqual(['2001:db8::1']);
  expect(await resolver.resolveCname('www.shop.test')).toEqual(['Shop.Test']);
  expect(await resolver.resolve4('any.wild.test')).toEqual(['192.0.2.1', '192.0.2.2']);
  await expect(resolver.resolve4('wild.test')).rejects.toMatchObject({ code: 'ENODATA' });
  await expect(resolver.resolve4('none.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  server.remove('shop.test', 'A');
  await expect(resolver.resolve4('shop.test')).rejects.toMatchObject({ code: 'ENODATA' });
});

it('the DNS server keeps the strings of a TXT record, and uses TCP for long responses', async () => {
  server.set('split.test', 'TXT', ['tunnel-', 'verify=x'], 'other');
  expect(await resolver.resolveTxt('split.test')).toEqual([['tunnel-', 'verify=x'], ['other']]);
  server.set('long.test', 'TXT', 'x'.repeat(5000));
  expect((await resolver.resolveTxt('long.test'))[0]?.join('')).toHaveLength(5000);
  expect(server.asked.filter(({ name }) => name === 'long.test').map(({ over }) => over)).toEqual(['udp', 'tcp']);
});

it('the DNS server forwards a delegated zone to its server, even behind a CNAME', async () => {
  const responder = await startDnsServer();
  try {
    responder.set('token._acme-challenge.tunnels.test', 'TXT', 'value', 'y'.repeat(2000));
    server.set('_acme-challenge.shop.test', 'CNAME', 'token._acme-challenge.tunnels.test');
    server.delegate('_acme-challenge.tunnels.test', responder);
    const texts = (await resolver.resolveTxt('_acme-challenge.shop.test')).map((pieces) => pieces.join(''));
    expect(texts).toEqual(['value', 'y'.repeat(2000)]);
    server.delegate('_acme-challenge.tunnels.test', null);
    await expect(resolver.resolveTxt('_acme-challenge.shop.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  } finally {
    await responder.close();
  }
});

it('the DNS server fails as configured, for one name or for all, until reset', async () => {
  server.set('shop.test', 'A', '192.0.2.1');
  server.set('other.test', 'A', '192.0.2.1');
  const codes = { servfail: 'ESERVFAIL', refused: 'EREFUSED', silent: 'ETIMEOUT', 'other-id': 'ETIMEOUT' } as const;
  for (const [fault, code] of Object.entries(codes)) {
    server.fail('shop.test', fault as keyof typeof codes);
    await expect(resolver.resolve4('shop.test')).rejects.toMatchObject({ code });
  }
  for (const fault of ['truncated', 'garbage', { slowMs: 5000 }] as const) {
    server.fail('shop.test', fault);
    await expect(resolver.resolve4('shop.test')).rejects.toThrow();
  }
  expect(await resolver.resolve4('other.test')).toEqual(['192.0.2.1']);
  server.fail('shop.test', null);
  expect(await resolver.resolve4('shop.test')).toEqual(['192.0.2.1']);
  server.fail('*', 'servfail');
  await expect(resolver.resolve4('other.test')).rejects.toMatchObject({ code: 'ESERVFAIL' });
});
