// Own domains of a real platform that asks a real resolver: what stands there in odd forms, and resolvers that fail.
import type { ApiError, OwnDomainView } from '@tunnel/contract';
import { type DnsServer, eventually, startDnsServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { Person, startPlatform } from './platform-test.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { Harness, it as harnessIt } from './system-test.fixture.ts';

const SOON = { timeoutMs: 30_000, intervalMs: 200 };

interface World {
  readonly stack: Stack;
  readonly dns: DnsServer;
}

/** Tests of this file share a stack: its database takes seconds to make. */
const it = harnessIt.extend<{ world: World }>({
  world: [
    async ({ task: _ }, use) => {
      const harness = new Harness();
      const dns = harness.use(await startDnsServer());
      const tables = `[dns]\nresolvers = ["${dns.address}"]\n[platform.plans.free]\ndomain_limit = 100`;
      const stack = await startPlatform(harness, { tables });
      await use({ stack, dns });
      await harness.close();
    },
    { scope: 'file' },
  ],
});

class Owner {
  readonly person: Person;

  constructor(person: Person) {
    this.person = person;
  }

  static async signUp(stack: Stack): Promise<Owner> {
    return new Owner(await Person.signUp(stack));
  }

  async add(name: string): Promise<OwnDomainView> {
    const { status, body } = await this.person.call<OwnDomainView>('/domains', { method: 'POST', body: { name } });
    expect([name, status]).toEqual([name, 201]);
    return body;
  }

  read(id: string): Promise<OwnDomainView> {
    return this.person.get(`/domains/${id}`);
  }

  /** As soon as it may be looked at again. */
  check(id: string): Promise<OwnDomainView> {
    return eventually(async () => {
      const { status, body } = await this.person.call<OwnDomainView & ApiError>(`/domains/${id}/check`, {
        ...{ method: 'POST', body: {} },
      });
      expect([status, body.error]).toEqual([200, undefined]);
      return body;
    }, SOON);
  }
}

/** What is set for a name with a token, and whether that proves it. */
type Odd = readonly [name: string, set: (dns: DnsServer, name: string, token: string) => void, state: string];

const target = (token: string): string => `${token}.localhost`;
const text = (token: string): string => `tunnel-verify=${token}`;

const ODD: readonly Odd[] = [
  ['upper.test.example', (dns, name, token) => dns.set(name, 'CNAME', target(token).toUpperCase()), 'verified'],
  [
    'chain.test.example',
    (dns, name, token) => {
      dns.set(name, 'CNAME', `a.${name}`);
      dns.set(`a.${name}`, 'CNAME', `B.${name}`);
      dns.set(`b.${name}`, 'CNAME', target(token));
    },
    'verified',
  ],
  [
    'split.test.example',
    (dns, name, token) => dns.set(`_tunnel.${name}`, 'TXT', 'v=spf1 -all', [...text(token)]),
    'verified',
  ],
  [
    'quoted.test.example',
    (dns, name, token) => dns.set(`_tunnel.${name}`, 'TXT', `  "${text(token).toUpperCase()}" `),
    'verified',
  ],
  [
    'many.test.example',
    (dns, name, token) => {
      const noise = Array.from({ length: 60 }, (_, nth) => `${nth}-${'x'.repeat(500)}`);
      dns.set(`_tunnel.${name}`, 'TXT', text(token), ...noise);
    },
    'verified',
  ],
  ['wild.test.example', (dns, name, token) => dns.set(`*.${name}`, 'CNAME', target(token)), 'pending'],
  ['huge.test.example', (dns, name) => dns.set(`_tunnel.${name}`, 'TXT', 'x'.repeat(50_000)), 'pending'],
  [
    'loop.test.example',
    (dns, name) => {
      dns.set(name, 'CNAME', `a.${name}`);
      dns.set(`a.${name}`, 'CNAME', name);
    },
    'pending',
  ],
  [
    'far.test.example',
    (dns, name, token) => {
      dns.set(name, 'CNAME', `n0.${name}`);
      for (let nth = 0; nth < 9; nth += 1) dns.set(`n${nth}.${name}`, 'CNAME', `n${nth + 1}.${name}`);
      dns.set(`n9.${name}`, 'CNAME', target(token));
    },
    'pending',
  ],
  ['address.test.example', (dns, name) => dns.set(name, 'A', '127.0.0.1'), 'pending'],
  ['edge.test.example', (dns, name) => dns.set(name, 'CNAME', 'localhost'), 'pending'],
  ['longer.test.example', (dns, name, token) => dns.set(name, 'CNAME', `x${target(token)}`), 'pending'],
  ['part.test.example', (dns, name, token) => dns.set(`_tunnel.${name}`, 'TXT', `${text(token)}x`), 'pending'],
  ['servfail.test.example', (dns, name) => dns.fail(name, 'servfail'), 'pending'],
  ['garbage.test.example', (dns, name) => dns.fail(name, 'garbage'), 'pending'],
];

it('a record proves a name in whichever form DNS gives it, and nothing else does', async ({ world }) => {
  const { stack, dns } = world;
  const ann = await Owner.signUp(stack);
  const states = await Promise.all(
    ODD.map(async ([name, set]) => {
      const { id, token } = await ann.add(name);
      set(dns, name, token);
      return [name, (await ann.check(id)).state];
    }),
  );
  expect(states).toEqual(ODD.map(([name, , state]) => [name, state]));
  expect(await ann.person.get('/domains')).toHaveLength(ODD.length);
});

it('a wildcard is proven at a label that nobody has set, not by a name below it', async ({ world }) => {
  const { stack, dns } = world;
  const ann = await Owner.signUp(stack);
  const { id, token } = await ann.add('*.stars.example');
  dns.set('a.stars.example', 'CNAME', target(token));
  expect((await ann.check(id)).state).toBe('pending');
  dns.set('*.stars.example', 'CNAME', target(token));
  expect(await ann.check(id)).toMatchObject({
    ...{ state: 'verified', wildcard: true },
    records: [{ type: 'CNAME', name: '*.stars.example', found: true }],
  });
});

it('resolvers that fail change nothing: neither for who has a domain, nor for who wants it', async ({ world }) => {
  const { stack, dns } = world;
  const [ann, bob] = [await Owner.signUp(stack), await Owner.signUp(stack)];
  const name = 'shop.failing.example';
  const anns = await ann.add(name);
  dns.set(name, 'CNAME', target(anns.token));
  expect((await ann.check(anns.id)).state).toBe('verified');
  const bobs = await bob.add(name);
  dns.set(`_tunnel.${name}`, 'TXT', text(bobs.token));
  dns.fail(name, 'servfail');
  expect(await bob.check(bobs.id)).toMatchObject({ state: 'pending' });
  expect(await ann.read(anns.id)).toMatchObject({
    ...{ state: 'verified', last_error: 'DNS gave no answer: ESERVFAIL', records: [{ found: true }] },
  });
  dns.fail(name, null);
  dns.remove(name);
  expect((await bob.check(bobs.id)).state).toBe('verified');
  expect((await ann.read(anns.id)).state).toBe('lapsed');
  dns.remove(`_tunnel.${name}`);
  dns.set(name, 'CNAME', target(anns.token));
  expect((await ann.check(anns.id)).state).toBe('verified');
  expect((await bob.read(bobs.id)).state).toBe('lapsed');
});
