// Tests of wildcard certificates through the built-in DNS responder, and of renewals while visitors send requests without a pause.
import { Resolver } from 'node:dns/promises';
import { Agent } from 'node:https';
import type { OwnDomainView } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { Computer } from '../computer.fixture.ts';
import { startWeb } from '../http-tunnels.fixture.ts';
import { Harness, it as harnessIt } from '../in-process.fixture.ts';
import { pidOfPart } from '../kill-trial.fixture.ts';
import { serverCommand } from '../server-command.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { DOMAIN, Outside, serve } from './outside.fixture.ts';

const SOON = { timeoutMs: 30_000 };
const HOUR_MS = 3_600_000;
const VISIT_EVERY_MS = 20;

const it = harnessIt.extend<{ world: { readonly outside: Outside; readonly stack: Stack } }>({
  world: [
    async ({ task: _ }, use) => {
      const harness = new Harness();
      const outside = await Outside.open(harness);
      await use({ outside, stack: await outside.stack(harness, { programs: true }) });
      await harness.close();
    },
    { scope: 'file' },
  ],
});

const web = async (harness: Harness) => harness.use(await startWeb((_, response) => void response.end('hello')));

/** Returns a resolver that queries only the DNS responder of the stack. */
const responderOf = ({ ports }: Outside): Resolver => {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  resolver.setServers([`127.0.0.1:${ports.dns}`]);
  return resolver;
};

it('wildcards below the server domain and an own domain get certificates through the DNS responder, which refuses queries for other names', async ({
  harness,
  world: { outside, stack },
}) => {
  const ann = await Computer.of(harness, stack, 'ann');
  const { port } = await web(harness);
  outside.dns.set(`_acme-challenge.shop.${DOMAIN}`, 'CNAME', `shop._acme-challenge.${DOMAIN}`);
  expect((await ann.tunnel(['reserve', 'shop'])).err).toBe('');
  expect((await ann.tunnel(['reserve', '*.shop'])).err).toBe('');
  const below = await serve(harness, ann, stack, port, '--subdomain', '*.shop');
  expect((await below.ready()).public_url).toMatch(new RegExp(`^https?://\\*\\.shop\\.${DOMAIN}`));
  await eventually(async () => expect(await outside.ask(`eu.shop.${DOMAIN}`)).toBe(200), SOON);

  const STORE = '*.store.example.com';
  const added = await ann.json<OwnDomainView>(['domains', 'add', STORE]);
  expect(added.records.map(({ purpose }) => purpose).toSorted()).toEqual(['challenge', 'proof']);
  for (const { type, name, value } of added.records) outside.dns.set(name, type as 'CNAME' | 'TXT', value);
  const waited = await ann.tunnel(['domains', 'add', STORE, '--wait']);
  expect([waited.code, waited.out]).toEqual([0, expect.stringContaining('certificate valid until')]);
  const own = await serve(harness, ann, stack, port, '--domain', STORE);
  expect((await own.ready()).public_url).toBe(`https://${STORE}:${outside.ports.https}`);
  expect([await outside.ask('eu.store.example.com'), await outside.askHttp2('us.store.example.com')]).toEqual([
    200, 200,
  ]);
  await expect(outside.ask('store.example.com')).rejects.toThrow(/unrecognized name/);
  await expect(outside.ask('a.b.store.example.com')).rejects.toThrow(/unrecognized name/);

  const zone = `_acme-challenge.${DOMAIN}`;
  const responder = responderOf(outside);
  expect((await responder.resolveSoa(zone)).nsname).toBe(DOMAIN);
  expect(await responder.resolveNs(zone)).toEqual([DOMAIN]);
  await expect(responder.resolve4(zone)).rejects.toMatchObject({ code: 'ENODATA' });
  for (const name of ['shop.example.com', DOMAIN, `www.${DOMAIN}`]) {
    await expect(responder.resolve4(name)).rejects.toMatchObject({ code: 'EREFUSED' });
  }
  // The TXT value of the challenge exists only during the validation.
  const challenge = added.records.find(({ purpose }) => purpose === 'challenge');
  expect(challenge?.name).toBe('_acme-challenge.store.example.com');
  const target = challenge?.value ?? '';
  const seen: string[][][] = [];
  outside.beforeTxt = async () => {
    seen.push(await responder.resolveTxt(target));
  };
  await serverCommand(stack, 'certificates', 'renew', STORE);
  await eventually(() => expect(outside.ordersOf(STORE).map(({ status }) => status)).toEqual(['valid', 'valid']), SOON);
  expect(seen).toEqual([[[expect.stringMatching(/^[\w-]{43}$/)]]]);
  await eventually(() => expect(responder.resolveTxt(target)).rejects.toMatchObject({ syscall: 'queryTxt' }), SOON);
}, 120_000);

it('renewals at the request of the authority and by command fail no visitor request', async ({
  harness,
  world: { outside, stack },
}) => {
  const ann = await Computer.of(harness, stack, 'renew');
  const { port } = await web(harness);
  const NAME = 'renew.example.com';
  const added = await ann.json<OwnDomainView>(['domains', 'add', NAME]);
  outside.dns.set(NAME, 'CNAME', added.cname_target);
  expect((await ann.tunnel(['domains', 'add', NAME, '--wait'])).code).toBe(0);
  await (await serve(harness, ann, stack, port, '--domain', NAME)).ready();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  harness.use({ close: () => Promise.resolve(agent.destroy()) });
  const answers = new Map<string, number>();
  const serials = new Set<string>();
  const visiting = { goesOn: true };
  const visit = async (way: Agent | false): Promise<void> => {
    while (visiting.goesOn) {
      const said = await outside.ask(NAME, way).then(String, (error: Error) => error.message);
      answers.set(said, (answers.get(said) ?? 0) + 1);
      // A visitor at full speed would take CPU time from the platform that renews.
      await new Promise((resolve) => setTimeout(resolve, VISIT_EVERY_MS));
      if (way === false) serials.add(await outside.serialOf(NAME).catch((error: Error) => error.message));
    }
  };
  const visits = [visit(false), visit(agent)];

  // A platform asks its authority for due renewals right after the start. Visitors do not notice the restart.
  const first = outside.ordersOf(NAME)[0]?.certificate?.renewalId;
  outside.authority.renewalWindow = { start: Date.now() - HOUR_MS, end: Date.now() - 1 };
  process.kill(pidOfPart(stack.dataDir, 'platform'), 'SIGKILL');
  await eventually(() => expect([outside.ordersOf(NAME).length >= 2, serials.size >= 2]).toEqual([true, true]), {
    timeoutMs: 60_000,
  });
  outside.authority.renewalWindow = null;
  expect(outside.ordersOf(NAME)[1]?.replaces).toBe(first);

  const known = serials.size;
  const listed = (await serverCommand(stack, 'certificates', 'list')).join('\n');
  expect(listed).toContain(NAME);
  await serverCommand(stack, 'certificates', 'renew', NAME);
  await eventually(() => expect(serials.size).toBeGreaterThan(known), SOON);
  expect(outside.ordersOf(NAME).at(-1)?.replaces).toBe(outside.ordersOf(NAME).at(-2)?.certificate?.renewalId);
  visiting.goesOn = false;
  await Promise.all(visits);
  expect([...answers.keys()]).toEqual(['200']);
  expect(answers.get('200')).toBeGreaterThan(20);
}, 120_000);
