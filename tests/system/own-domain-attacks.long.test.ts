// Tests of own domains as used by an attacker: names of other accounts, DNS servers that never answer, and unusual Host headers.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiError, CreatedKey, OwnDomainView } from '@tunnel/contract';
import { type DnsServer, eventually, startDnsServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, readUntil, sendRaw, startWeb } from './http-tunnels.fixture.ts';
import { Harness, it as harnessIt } from './in-process.fixture.ts';
import { openWith, Person, startPlatform } from './platform-test.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import type { TunnelProgram } from './tunnel-program.fixture.ts';

const SOON = { timeoutMs: 20_000, intervalMs: 100 };
/** Maximum time in milliseconds until the tunnels of a lost domain are closed. */
const CLOSED_MS = 2000;

interface World {
  readonly stack: Stack;
  readonly dns: DnsServer;
}

const it = harnessIt.extend<{ world: World }>({
  world: [
    async ({ task: _ }, use) => {
      const harness = new Harness();
      const dns = harness.use(await startDnsServer());
      const plan = '[platform.plans.free]\ndomain_limit = 100';
      const tables = `[dns]\nresolvers = ["${dns.address}"]\n${plan}\n[load_balancing]\nenabled = true`;
      await use({ dns, stack: await startPlatform(harness, { tables }) });
      await harness.close();
    },
    { scope: 'file' },
  ],
});

class Account {
  readonly person: Person;
  readonly key: CreatedKey;
  readonly #stack: Stack;

  constructor(stack: Stack, person: Person, key: CreatedKey) {
    this.#stack = stack;
    this.person = person;
    this.key = key;
  }

  static async of({ stack }: World): Promise<Account> {
    const person = await Person.signUp(stack);
    return new Account(stack, person, await person.newKey());
  }

  async add(name: string): Promise<OwnDomainView> {
    const { status, body } = await this.person.call<OwnDomainView>('/domains', { method: 'POST', body: { name } });
    expect([name, status]).toEqual([name, 201]);
    return body;
  }

  askedCheck(id: string) {
    return this.person.call<OwnDomainView & ApiError>(`/domains/${id}/check`, { method: 'POST', body: {} });
  }

  /** Checks a domain as soon as the next check is allowed, and returns its state. */
  check(id: string): Promise<string> {
    return eventually(async () => {
      const { status, body } = await this.askedCheck(id);
      expect([status, body.error]).toEqual([200, undefined]);
      return body.state;
    }, SOON);
  }

  async verified(dns: DnsServer, name: string): Promise<OwnDomainView> {
    const domain = await this.add(name);
    dns.set(name, 'CNAME', domain.cname_target);
    expect([name, await this.check(domain.id)]).toEqual([name, 'verified']);
    return domain;
  }

  async remove({ id }: OwnDomainView): Promise<void> {
    expect((await this.person.call(`/domains/${id}`, { method: 'DELETE' })).status).toBe(204);
  }

  /** Opens a tunnel from the domain to a service that responds with the text. */
  async serve(harness: Harness, domain: string, text: string, flags: readonly string[] = []): Promise<TunnelProgram> {
    const web = harness.use(await startWeb((_request, response) => void response.end(text)));
    return openWith(harness, this.#stack, this.key, ['http', web.port, '--domain', domain, ...flags]);
  }
}

const portOf = ({ run }: Stack): number => Number(new URL(run.http_url).port);

/** Returns the text that a visitor of the host gets, or the status with the error code. */
const visitorOf =
  ({ stack }: World) =>
  async (host: string): Promise<string> => {
    const { status, text, headers } = await askHttp({ host, port: portOf(stack) });
    return status === 200 ? text : `${status} ${String(headers['x-tunnel-error'])}`;
  };

const UNVERIFIED = 4;

it('a wildcard and a name below it can belong to two accounts, and each account gets only its own visitors', async ({
  harness,
  world,
}) => {
  const { dns } = world;
  const visit = visitorOf(world);
  const ann = await Account.of(world);
  const bob = await Account.of(world);
  await ann.verified(dns, '*.two.example');
  const shop = await bob.verified(dns, 'shop.two.example');
  await (await ann.serve(harness, '*.two.example', 'ann')).ready();
  expect(await visit('any.two.example')).toBe('ann');
  expect(await visit('shop.two.example')).toBe('502 TUNNEL_AWAY');
  expect(await visit('two.example')).toBe('404 TUNNEL_NOT_FOUND');
  expect(await (await ann.serve(harness, 'shop.two.example', 'thief')).exitCode()).toBe(UNVERIFIED);
  expect(await (await bob.serve(harness, 'any.two.example', 'thief')).exitCode()).toBe(UNVERIFIED);
  const bobs = await bob.serve(harness, 'shop.two.example', 'bob');
  await bobs.ready();
  expect([await visit('shop.two.example'), await visit('any.two.example')]).toEqual(['bob', 'ann']);
  await bob.remove(shop);
  await eventually(async () => expect(await visit('shop.two.example')).toBe('ann'), { timeoutMs: CLOSED_MS });
  expect(await bobs.exitCode()).toBe(UNVERIFIED);
});

it('a domain moved between accounts has a single owner at a time, and only tunnels of the owner are open', async ({
  harness,
  world,
}) => {
  const { dns } = world;
  const visit = visitorOf(world);
  const name = 'moved.example';
  const ann = await Account.of(world);
  const bob = await Account.of(world);
  const anns = await ann.verified(dns, name);
  const bobs = await bob.add(name);
  const first = await ann.serve(harness, name, 'ann');
  await first.ready();
  expect(await visit(name)).toBe('ann');
  dns.set(name, 'CNAME', bobs.cname_target);
  // The two accounts request a check at the same time, without waiting for each other.
  const [, moved] = await Promise.all([ann.askedCheck(anns.id), bob.check(bobs.id)]);
  const from = performance.now();
  expect(moved).toBe('verified');
  expect(await first.exitCode()).toBe(UNVERIFIED);
  expect(performance.now() - from).toBeLessThan(CLOSED_MS + 1000);
  expect(await visit(name)).toBe('502 TUNNEL_AWAY');
  const keyFile = join(await harness.folder(), 'group-key');
  writeFileSync(keyFile, 'secret of the pool');
  const pool = ['--group', 'pool', '--group-key-file', keyFile];
  const members = [await bob.serve(harness, name, 'bob', pool), await bob.serve(harness, name, 'bob', pool)];
  for (const member of members) await member.ready();
  expect(await visit(name)).toBe('bob');
  await bob.remove(bobs);
  for (const member of members) expect(await member.exitCode(CLOSED_MS + 1000)).toBe(UNVERIFIED);
  expect(await visit(name)).toBe('404 TUNNEL_NOT_FOUND');
});

it('a hundred domains with silent DNS servers delay no other account', async ({ world }) => {
  const { dns } = world;
  const mallory = await Account.of(world);
  const bob = await Account.of(world);
  const slow: OwnDomainView[] = [];
  for (let nth = 0; nth < 100; nth += 1) {
    dns.fail(`slow${nth}.example`, 'silent');
    slow.push(await mallory.add(`slow${nth}.example`));
  }
  const statuses = new Map<number, number>();
  const asking = Promise.all(
    slow.map(async ({ id }) => {
      const { status } = await mallory.askedCheck(id);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }),
  );
  const from = performance.now();
  await bob.verified(dns, 'quick.example');
  expect(performance.now() - from).toBeLessThan(5000);
  await asking;
  expect(new Set(statuses.keys())).toEqual(new Set([200, 429]));
  expect(statuses.get(429)).toBeGreaterThan(50);
  for (const domain of slow) await mallory.remove(domain);
});

it('an unusual Host header reaches its own tunnel or no tunnel, never a tunnel of another account', async ({
  harness,
  world,
}) => {
  const { stack, dns } = world;
  const ann = await Account.of(world);
  const bob = await Account.of(world);
  await ann.verified(dns, 'ann.odd.example');
  await bob.verified(dns, 'bob.odd.example');
  const wild = await bob.verified(dns, '*.wild.odd.example');
  await (await ann.serve(harness, 'ann.odd.example', 'I am ann')).ready();
  await (await bob.serve(harness, 'bob.odd.example', 'I am bob')).ready();
  await (await bob.serve(harness, '*.wild.odd.example', 'I am wild')).ready();
  const port = portOf(stack);
  const raw = async (lines: readonly string[]): Promise<string> => {
    const endpoint = { host: 'ann.odd.example', port };
    const socket = await sendRaw(endpoint, `${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
    const heard = await readUntil(socket, /\r\n\r\n[^]*(?:I am \w+|\}|<\/html>)|\r\n\r\n$/).finally(() =>
      socket.destroy(),
    );
    const text = /I am (\w+)/.exec(heard)?.[1];
    return text ?? (/^HTTP\/1\.1 (\d+)/.exec(heard)?.[1] as string);
  };
  for (const [lines, answer] of [
    [['GET / HTTP/1.1', 'Host: ANN.Odd.Example'], 'ann'],
    [['GET / HTTP/1.1', `Host: ann.odd.example.:${port}`], 'ann'],
    [['GET / HTTP/1.1', 'Host: ann.odd.example:1'], 'ann'],
    [['GET / HTTP/1.1', 'Host: ann.odd.example..'], /^40[04]$/],
    [['GET / HTTP/1.1', 'Host: ann.odd.example', 'Host: bob.odd.example'], '400'],
    [['GET http://bob.odd.example/ HTTP/1.1', 'Host: ann.odd.example'], /^(?:bob|400)$/],
    [['GET / HTTP/1.1', 'Host: ann%2eodd.example'], /^40[04]$/],
    [['GET / HTTP/1.1', 'Host: ann.odd.example, bob.odd.example'], /^40[04]$/],
    [['GET / HTTP/1.1', 'Host: bob.odd.example@ann.odd.example'], /^40[04]$/],
    [['GET / HTTP/1.1', 'Host: _.odd.example'], '404'],
    [['GET / HTTP/1.1', 'Host: *.wild.odd.example'], /^40[04]$/],
    [['GET / HTTP/1.1', 'Host: x.wild.odd.example'], 'wild'],
    [['GET / HTTP/1.1', 'Host: _x.wild.odd.example'], /^(?:wild|40[04])$/],
    [['GET / HTTP/1.1', 'Host: .wild.odd.example'], /^40[04]$/],
    [['GET / HTTP/1.1', `Host: ${wild.cname_target}`], '404'],
    [['GET / HTTP/1.1', 'Host: pending.odd.example'], '404'],
    [['GET / HTTP/1.1', 'Host: localhost'], '404'],
    [['GET /_control HTTP/1.1', 'Host: ann.odd.example'], 'ann'],
    [['GET / HTTP/1.1', 'Host: ann.odd.example', 'X-Forwarded-Host: bob.odd.example'], 'ann'],
  ] as const) {
    expect([lines, await raw(lines)]).toEqual([
      lines,
      typeof answer === 'string' ? answer : expect.stringMatching(answer),
    ]);
  }
});

it('a deleted account keeps no domain: visitors get a 404, and its old DNS record verifies no other account', async ({
  harness,
  world,
}) => {
  const { dns } = world;
  const visit = visitorOf(world);
  const ann = await Account.of(world);
  const bob = await Account.of(world);
  await ann.verified(dns, 'left.example');
  const program = await ann.serve(harness, 'left.example', 'ann');
  await program.ready();
  const deleted = await ann.person.call('/auth/me', { method: 'DELETE', body: { password: 'correct horse battery' } });
  expect(deleted.status).toBeLessThan(300);
  expect(await program.exitCode()).not.toBe(0);
  await eventually(async () => expect(await visit('left.example')).toBe('404 TUNNEL_NOT_FOUND'), SOON);
  // The DNS record still exists, but verifies no other account.
  const bobs = await bob.add('left.example');
  expect(await bob.check(bobs.id)).toBe('pending');
});
