// Test of an own domain from its DNS record to its certificate and its removal, with a stack, a client, a certificate authority and a DNS
// server.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OwnDomainView } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { Computer } from '../computer.fixture.ts';
import { ask } from '../embedded-database.fixture.ts';
import { echoSockets, startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { Outside, serve } from './outside.fixture.ts';

const SHOP = 'shop.example.com';
const SOON = { timeoutMs: 20_000 };
/** Maximum time until the tunnels of a lost domain are closed: 2 s by contract, plus 1.5 s for two busy cores to end a process. */
const CLOSED_WITHIN_MS = 2000 + 1500;

const shown = (who: Computer): Promise<OwnDomainView> => who.json(['domains', 'show', SHOP]);

const keptFor = (stack: Stack, name: string): Promise<unknown> => {
  const url = stack.databaseUrl;
  if (url === null) throw new Error('the database runs');
  return ask(url, `select count(*)::int from certificates where names = '${name}'`);
};

it('an own domain is verified by its DNS record, gets a certificate, serves a group, moves with its record, and is removed completely', async ({
  harness,
}) => {
  const outside = await Outside.open(harness);
  const stack = await outside.stack(harness, { tables: '[load_balancing]\nenabled = true' });
  const ann = await Computer.of(harness, stack, 'ann');
  const bob = await Computer.of(harness, stack, 'bob');
  const name = (text: string) => startWeb((_, response) => void response.end(text));
  const first = harness.use(await name('one'));
  const second = harness.use(await name('two'));
  const sockets = echoSockets(first);

  // An A record that points to the server does not prove ownership, so no certificate is ordered.
  outside.dns.set(SHOP, 'A', '127.0.0.1');
  const added = await ann.json<OwnDomainView>(['domains', 'add', SHOP]);
  expect((await ann.json<OwnDomainView>(['domains', 'check', SHOP])).state).toBe('pending');
  await expect(outside.shakeHands(SHOP)).rejects.toThrow(/unrecognized name/);
  expect(outside.ordersOf(SHOP)).toEqual([]);

  outside.dns.remove(SHOP);
  outside.dns.set(SHOP, 'CNAME', added.cname_target);
  const from = performance.now();
  const waited = await ann.tunnel(['domains', 'add', SHOP, '--wait']);
  expect([waited.code, waited.out]).toEqual([0, expect.stringContaining('certificate valid until')]);
  expect(performance.now() - from).toBeLessThan(20_000);

  const key = join(await harness.folder(), 'group-key');
  writeFileSync(key, 'the key of the group', { mode: 0o600 });
  const group = ['--domain', SHOP, '--group', 'shop', '--group-key-file', key];
  const members = [
    await serve(harness, ann, stack, first.port, ...group),
    await serve(harness, ann, stack, second.port, ...group),
  ];
  const [ready] = await Promise.all(members.map((member) => member.ready()));
  expect([ready?.public_url, ready?.['warnings']]).toEqual([`https://${SHOP}:${outside.ports.https}`, []]);
  expect([await outside.ask(SHOP), await outside.askHttp2(SHOP)]).toEqual([200, 200]);
  const answered = new Set<string>();
  await eventually(async () => {
    answered.add(await outside.textOf(SHOP));
    expect([...answered].toSorted()).toEqual(['one', 'two']);
  }, SOON);
  await members[1]?.kill();
  const socket = new WebSocket(`wss://${SHOP}:${outside.ports.https}/`, {
    createConnection: () => outside.dial(SHOP),
  });
  const echoed = new Promise((resolve, reject) => {
    socket.on('open', () => socket.send('over TLS')).on('error', reject);
    socket.on('message', (data) => resolve(String(data as Buffer)));
  });
  expect(await echoed).toBe('over TLS');
  socket.terminate();

  // The DNS record decides which account owns the domain.
  const theirs = await bob.json<OwnDomainView>(['domains', 'add', SHOP]);
  outside.dns.set(SHOP, 'CNAME', theirs.cname_target);
  expect((await bob.json<OwnDomainView>(['domains', 'check', SHOP])).state).toBe('verified');
  expect(await members[0]?.exitCode(CLOSED_WITHIN_MS)).toBe(4);
  expect([(await shown(ann)).state, (await shown(bob)).certificate?.state]).toEqual(['lapsed', 'valid']);
  const moved = await serve(harness, bob, stack, second.port, '--domain', SHOP);
  await moved.ready();
  expect(await outside.textOf(SHOP)).toBe('two');

  expect(await keptFor(stack, SHOP)).toBe(1);
  expect((await bob.tunnel(['domains', 'remove', SHOP, '--yes'])).code).toBe(0);
  expect(await moved.exitCode(CLOSED_WITHIN_MS)).toBe(4);
  await eventually(() => expect(outside.shakeHands(SHOP)).rejects.toThrow(/unrecognized name/), SOON);
  // The certificate is deleted even though the lapsed domain of ann still exists.
  expect([await keptFor(stack, SHOP), (await shown(ann)).state]).toEqual([0, 'lapsed']);
  expect(outside.ordersOf(SHOP).length).toBe(1);
  sockets.close();
}, 120_000);
