// `tunnel domains` and `--domain` as two people use them beside each other: the real programs, a real stack, and a DNS that this test fills.
import type { OwnDomainView } from '@tunnel/contract';
import { type DnsServer, eventually, startDnsServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { Computer } from './computer.fixture.ts';
import { type Answering, askHttp, endpointOf, startWeb } from './http-tunnels.fixture.ts';
import { startPlatform } from './platform-test.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { Harness, it as harnessIt } from './system-test.fixture.ts';
import type { TunnelProgram } from './tunnel-program.fixture.ts';

const SOON = { timeoutMs: 20_000 };
const SHOP = 'shop.example.com';

const hello: Answering = (_, response) => {
  response.end('hello');
};

const serve = (harness: Harness, { home }: Computer, port: number, domain = SHOP): Promise<TunnelProgram> =>
  harness.run(['http', String(port), '--domain', domain, '--json'], { home });

/** A stack whose database takes seconds to make, and the DNS that it asks: of both tests. */
const it = harnessIt.extend<{ world: { readonly dns: DnsServer; readonly stack: Stack } }>({
  world: [
    async ({ task: _ }, use) => {
      const harness = new Harness();
      const dns = harness.use(await startDnsServer());
      const tables = `[dns]\nresolvers = ["${dns.address}"]`;
      await use({ dns, stack: await startPlatform(harness, { fixedPorts: true, tables }) });
      await harness.close();
    },
    { scope: 'file' },
  ],
});

const shown = (who: Computer, name = SHOP): Promise<OwnDomainView> => who.json(['domains', 'show', name]);

it('a domain is proven by its record, served, moved by the record to another account, and removed', async ({
  harness,
  world: { dns, stack },
}) => {
  const web = harness.use(await startWeb(hello));
  const [ann, bob] = [await Computer.of(harness, stack, 'ann'), await Computer.of(harness, stack, 'bob')];
  expect((await ann.tunnel(['domains'])).out).toBe('no domains\n  Add one: tunnel domains add shop.example.com\n');
  // An address that leads here proves nothing.
  dns.set(SHOP, 'A', '127.0.0.1');
  const added = await ann.tunnel(['domains', 'add', 'Shop.Example.COM.', '--no-certificate']);
  const { cname_target: target } = await shown(ann);
  expect([added.code, added.out]).toEqual([
    0,
    expect.stringContaining(`CNAME  ${SHOP}  ${target}  proof and route  missing`),
  ]);
  expect((await ann.tunnel(['domains', 'check', SHOP])).out).toContain(`${SHOP}: pending`);
  const early = await serve(harness, ann, web.port);
  expect(await early.exitCode()).toBe(4);
  expect(early.events('error')).toMatchObject([
    { code: 'TUNNEL_DOMAIN_UNVERIFIED', next: `Prove that it is yours: \`tunnel domains add ${SHOP}\`.` },
  ]);

  dns.remove(SHOP);
  dns.set(SHOP, 'CNAME', target.toUpperCase());
  const waited = await ann.tunnel(['domains', 'add', SHOP, '--no-certificate', '--wait']);
  expect([waited.code, waited.out]).toEqual([
    0,
    expect.stringContaining(`  Use it: tunnel http 3000 --domain ${SHOP}\n`),
  ]);
  const first = await serve(harness, ann, web.port);
  const endpoint = endpointOf((await first.ready()).public_url);
  expect(endpoint.host).toMatch(/^shop\.example\.com:\d+$/);
  expect((await askHttp(endpoint)).text).toBe('hello');
  await eventually(
    async () =>
      expect((await ann.tunnel(['domains'])).out).toMatch(/^shop\.example\.com {2}verified {2}.*in use by 1 tunnel\n/),
    SOON,
  );

  // Somebody else waits for the same name, and is told nothing of it; the record decides.
  const theirs = await bob.json<OwnDomainView>(['domains', 'add', SHOP, '--no-certificate']);
  expect([theirs.state, theirs.token === (await shown(ann)).token]).toEqual(['pending', false]);
  expect((await bob.tunnel(['domains', 'check', SHOP])).out).toContain(`${SHOP}: pending`);
  dns.set(SHOP, 'CNAME', theirs.cname_target);
  expect((await bob.tunnel(['domains', 'check', SHOP])).out).toContain(`${SHOP}: verified`);
  expect((await shown(ann)).state).toBe('lapsed');
  expect(await first.exitCode(10_000)).toBe(4);
  const second = await serve(harness, bob, web.port);
  expect((await askHttp(endpointOf((await second.ready()).public_url))).text).toBe('hello');
  expect(await (await serve(harness, ann, web.port)).exitCode()).toBe(4);

  expect(await bob.tunnel(['domains', 'remove', SHOP])).toMatchObject({
    code: 2,
    err: 'tunnel: Add --yes to confirm.\n',
  });
  const from = performance.now();
  expect((await bob.tunnel(['domains', 'remove', SHOP, '--yes'])).code).toBe(0);
  expect(await second.exitCode(10_000)).toBe(4);
  expect(performance.now() - from).toBeLessThan(5000);
  expect((await askHttp(endpoint)).status).toBe(404);
  expect(await bob.json<OwnDomainView[]>(['domains'])).toEqual([]);
  // The same account gets the same token again.
  expect((await bob.json<OwnDomainView>(['domains', 'add', SHOP, '--no-certificate'])).token).toBe(theirs.token);
});

it('names are understood as they are typed; what cannot be one, and what is over the plan, is told in words', async ({
  harness,
  world: { dns, stack },
}) => {
  const web = harness.use(await startWeb(hello));
  const ann = await Computer.of(harness, stack, 'letters');
  const added = await ann.json<OwnDomainView>(['domains', 'add', 'Bücher.example', '--no-certificate']);
  expect([added.name, added.records.map(({ type }) => type)]).toEqual([
    'xn--bcher-kva.example',
    expect.arrayContaining(['TXT']),
  ]);
  for (const { type, name, value } of added.records) dns.set(name, type, value);
  expect((await ann.tunnel(['domains', 'check', 'BÜCHER.example'])).out).toContain('(bücher.example): verified');
  const books = await serve(harness, ann, web.port, 'bücher.example');
  expect((await askHttp(endpointOf((await books.ready()).public_url))).text).toBe('hello');

  const star = await ann.json<OwnDomainView>(['domains', 'add', '*.store.example.com', '--no-certificate']);
  dns.set('*.store.example.com', 'CNAME', star.cname_target);
  expect((await ann.tunnel(['domains', 'check', '*.store.example.com'])).code).toBe(0);
  expect((await shown(ann, '*.Store.Example.com')).state).toBe('verified');
  const wild = await serve(harness, ann, web.port, '*.store.example.com');
  const { port } = new URL((await wild.ready()).public_url.replace('*.', 'eu.'));
  expect((await askHttp({ host: `eu.store.example.com:${port}`, port: Number(port) })).text).toBe('hello');
  expect((await askHttp({ host: `store.example.com:${port}`, port: Number(port) })).status).toBe(404);

  for (const [name, words] of [
    ['localhost', "domain 'localhost' is not valid"],
    ['a.localhost', 'reserve a subdomain instead'],
    ['192.0.2.1', 'it is an address'],
    [`${`${'a'.repeat(60)}.`.repeat(4)}${'b'.repeat(10)}`, 'is not valid'],
  ] as const) {
    const refused = await ann.tunnel(['domains', 'add', name]);
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining(words)]);
  }
  expect((await ann.tunnel(['domains', 'add', 'three.example.com'])).code).toBe(0);
  expect(await ann.tunnel(['domains', 'add', 'four.example.com'])).toMatchObject({
    code: 2,
    err: expect.stringMatching(/^tunnel: domain limit of 3 reached\n {2}Remove one that you no longer use: /),
  });
});
