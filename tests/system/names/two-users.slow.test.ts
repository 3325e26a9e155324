// Tests of two accounts at the same platform: a name used or reserved by the first account is refused to the second in every way of
// asking.
import { readFileSync } from 'node:fs';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { startWeb, type WebService } from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import { openWith, startPlatform } from '../platform-test.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import {
  Client,
  fateOfVisit,
  freshName,
  inUse,
  keyHash,
  portInUse,
  ROOMY_PLAN,
  reserved,
  SOON,
  Tenant,
  visitName,
} from './names.fixture.ts';

const shared = new Harness();
let stack: Stack;
let web: WebService;
let ann: Tenant;
let ben: Tenant;
beforeAll(async () => {
  stack = await startPlatform(shared, { tables: `${ROOMY_PLAN}\n[load_balancing]\nenabled = true` });
  web = shared.use(await startWeb((request, response) => void response.end(`ann's ${request.url}`)));
  [ann, ben] = await Promise.all([Tenant.signUp(stack, 'ann'), Tenant.signUp(stack, 'ben')]);
});
afterAll(() => shared.close());

/** Returns a name that ann used once and left with a clean exit. */
const usedByAnn = async (harness: Harness): Promise<string> => {
  const name = freshName();
  expect(await ann.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`);
  return name;
};

const freePortOf = (nth: number): number => stack.tcpPorts.to - nth;

describe('a name', () => {
  it('that was used once is refused to other accounts as in use, and returns to its account', async ({ harness }) => {
    const name = freshName();
    const flags = ['http', web.port, '--subdomain', name];
    const first = await openWith(harness, stack, { token: ann.key }, flags);
    await first.ready();
    expect((await visitName(stack, name, '/one')).text).toBe("ann's /one");
    first.signal('SIGTERM');
    expect(await first.exitCode()).toBe(0);

    const stranger = await openWith(harness, stack, { token: ben.key }, [...flags, '--name', 'mine']);
    expect(await stranger.exitCode()).toBe(4);
    expect(stranger.stderr[0]).toBe(`tunnel: mine: subdomain '${name}' is already in use`);
    expect(await fateOfVisit(stack, name)).toBe('404 TUNNEL_NOT_FOUND');

    const again = await openWith(harness, stack, { token: ann.key }, flags);
    await again.ready();
    expect((await visitName(stack, name, '/two')).text).toBe("ann's /two");
  });

  it('that is reserved gives a 502 while its client is away, and still belongs to its account after its release', async ({
    harness,
  }) => {
    const name = freshName();
    const { id, public_address, expires_at } = await reserved(ann, { kind: 'subdomain', label: name });
    expect([public_address, expires_at]).toEqual([expect.stringContaining(`${name}.localhost`), null]);
    await eventually(async () => expect(await fateOfVisit(stack, name)).toBe('502 TUNNEL_AWAY'), SOON);
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    expect(await ann.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`);
    expect((await ann.release(id)).status).toBe(204);
    // For visitors the released name looks unknown, but the name still belongs to its account.
    await eventually(async () => expect(await fateOfVisit(stack, name)).toBe('404 TUNNEL_NOT_FOUND'), SOON);
    // The grace period begins once the platform has learned of the end of the last tunnel.
    await eventually(
      async () =>
        expect(await ann.reservation(name)).toMatchObject({ state: 'released', expires_at: expect.any(String) }),
      SOON,
    );
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    expect((await ben.reserve({ kind: 'subdomain', label: name })).status).toBe(409);
    expect(await ann.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`);
  });

  it('that was assigned randomly is held for its account as well', async ({ harness }) => {
    const said = await ann.ask(harness, stack, {});
    const name = said.slice('ok '.length);
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    expect(await ann.reservation(name)).toMatchObject({ kind: 'subdomain', state: 'held', region_id: null });
  });

  it('released while its tunnel is open stays released after the tunnel has closed', async ({ harness }) => {
    const name = freshName();
    const { id } = await reserved(ann, { kind: 'subdomain', label: name });
    const client = await ann.enter(harness, stack);
    expect(await client.ask({ subdomain: name })).toBe(`ok ${name}`);
    expect((await ann.release(id)).status).toBe(204);
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    await client.leave();
    await eventually(async () => expect(await ann.reservation(name)).toMatchObject({ state: 'released' }), SOON);
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
  });
});

describe.concurrent('a name used by ann is refused to ben', () => {
  it.for([
    ['in capitals', (name: string) => ({ subdomain: name.toUpperCase() })],
    ['by its wildcard', (name: string) => ({ subdomain: `*.${name}` })],
    ['by a name below it', (name: string) => ({ subdomain: `a.${name}` })],
    ['by a name below it in capitals', (name: string) => ({ subdomain: `A.${name.toUpperCase()}` })],
  ] as const)('%s', async ([, request], { harness }) => {
    const name = await usedByAnn(harness);
    expect(await ben.ask(harness, stack, request(name))).toMatch(/^TUNNEL_SUBDOMAIN_IN_USE: /);
    expect((await ben.reservations()).filter(({ label }) => label.includes(name))).toEqual([]);
    expect(await ann.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`);
  });

  it.for([
    ['with a trailing dot', (name: string) => `${name}.`],
    ['with a dot in front', (name: string) => `.${name}`],
    ['with a blank', (name: string) => `${name} `],
    ['with a NUL', (name: string) => `${name}\0`],
    ['two labels below it', (name: string) => `a.b.${name}`],
    ['by a wildcard two labels below it', (name: string) => `*.a.${name}`],
    ['by a wildcard in its middle', (name: string) => `a.*.${name}`],
    ['by a part of a wildcard', (name: string) => `x*.${name}`],
    ['with the domain behind it', (name: string) => `${name}.localhost`],
    ['with letters that look the same', (name: string) => name.replace('o', 'о')],
    ['with the kelvin sign and others that fold', (name: string) => name.replace('s', 'ſ')],
    ['in 254 characters', (name: string) => `${name}${'x'.repeat(254 - name.length)}`],
  ] as const)('%s, which is an invalid name', async ([, spelling], { harness }) => {
    const name = await usedByAnn(harness);
    const said = await ben.ask(harness, stack, { subdomain: spelling(name) });
    expect(said).toMatch(/^(?:TUNNEL_SUBDOMAIN_INVALID|TUNNEL_SUBDOMAIN_IN_USE): /);
    const { status } = await ben.reserve({ kind: 'subdomain', label: spelling(name) });
    expect([400, 409]).toContain(status);
    expect((await ben.reservations()).filter(({ label }) => label.includes(name))).toEqual([]);
  });

  it('as a preferred name: ben gets a different name', async ({ harness }) => {
    const name = await usedByAnn(harness);
    const said = await ben.ask(harness, stack, { preferred_subdomain: name });
    expect(said).toMatch(/^ok /);
    expect(said).not.toBe(`ok ${name}`);
    expect(await ann.reservation(name)).toBeDefined();
  });

  it('with the id of an existing tunnel of ben', async ({ harness }) => {
    const name = await usedByAnn(harness);
    const client = await ben.enter(harness, stack);
    const { tunnel_id } = await client.answer({ subdomain: freshName('bens') });
    expect(await client.ask({ tunnel_id: String(tunnel_id), subdomain: name })).not.toBe(`ok ${name}`);
    expect(await client.ask({ tunnel_id: String(tunnel_id), preferred_subdomain: name })).not.toBe(`ok ${name}`);
    expect(await ann.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`);
  });

  it('with the resume token of ann in a session of ben', async ({ harness }) => {
    const name = freshName();
    const lost = await ann.enter(harness, stack);
    const { tunnel_id } = await lost.answer({ subdomain: name });
    const secret = lost.resume;
    await lost.cut();
    const thief = await ben.enter(harness, stack, secret);
    expect(await thief.ask({ subdomain: name })).toBe(inUse(name));
    expect(await thief.ask({ subdomain: name, tunnel_id: String(tunnel_id) })).toBe(inUse(name));
    const back = await ann.enter(harness, stack, secret);
    expect(await back.ask({ subdomain: name, tunnel_id: String(tunnel_id) })).toBe(`ok ${name}`);
  });

  it('as a group, with any key', async ({ harness }) => {
    const name = await usedByAnn(harness);
    const mismatch = 'GROUP_KEY_MISMATCH: group key does not match';
    for (const key of ['', 'another', 'null', 'undefined']) {
      const group = { group: name, group_key_hash: keyHash(key), subdomain: name };
      expect(await ben.ask(harness, stack, group)).toBe(mismatch);
    }
    expect(await ann.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`);
  });

  it('as a group with the key of another group, or as a single tunnel with the name of a group', async ({
    harness,
  }) => {
    const name = freshName('pool');
    const other = freshName('pool');
    const asGroup = (group: string, key: string) => ({ group, group_key_hash: keyHash(key), subdomain: group });
    expect(await ann.ask(harness, stack, asGroup(name, 'one'))).toBe(`ok ${name}`);
    expect(await ann.ask(harness, stack, asGroup(other, 'two'))).toBe(`ok ${other}`);
    expect(await ben.ask(harness, stack, asGroup(name, 'two'))).toMatch(/^GROUP_KEY_MISMATCH: /);
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    expect(await ben.ask(harness, stack, { subdomain: `*.${name}` })).toMatch(/^TUNNEL_SUBDOMAIN_IN_USE: /);
    // The right group key admits ben's tunnel, but does not make ben the owner.
    expect(await ben.ask(harness, stack, asGroup(name, 'one'))).toBe(`ok ${name}`);
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    expect(await ben.reservation(name)).toBeUndefined();
    expect(await ann.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`);
    // The last use was a single tunnel. An earlier group key may or may not still work, but ben never owns the name.
    expect(await ben.reservation(name)).toBeUndefined();
  });

  it('and to the operator', async ({ harness }) => {
    const name = await usedByAnn(harness);
    const token = readFileSync(stack.tokenFile, 'utf8').trim();
    const operator = await Client.enter(harness, stack, token);
    expect(await operator.ask({ subdomain: name })).toBe(inUse(name));
    expect(await operator.ask({ subdomain: `a.${name}` })).toMatch(/^TUNNEL_SUBDOMAIN_IN_USE: /);
    await operator.leave();
  });
});

describe.concurrent('reserved words and invalid names', () => {
  it.for([
    'localhost',
    'www',
    'admin',
    'a.www',
    '*.admin',
    'LOCALHOST',
    'münchen',
    'a..b',
    '*',
    '*.',
    '.',
    '',
    '@',
    '-a',
    'x'.repeat(64),
  ])('are refused to every account: %s', async (name, { harness }) => {
    expect(await ben.ask(harness, stack, { subdomain: name })).toMatch(/^TUNNEL_SUBDOMAIN_INVALID: /);
    const { status, body } = await ben.reserve({ kind: 'subdomain', label: name });
    expect([status, typeof body.error]).toEqual([400, 'string']);
  });
});

describe('a port', () => {
  it('that is reserved is refused to other accounts and never assigned to them', async ({ harness }) => {
    const port = freePortOf(1);
    const { id, region_id } = await reserved(ann, { kind: 'tcp', label: String(port) });
    expect(region_id).toEqual(expect.any(String));
    await eventually(
      async () => expect(await ben.ask(harness, stack, { protocol: 'tcp', remote_port: port })).toBe(portInUse(port)),
      SOON,
    );
    const preferred = await ben.ask(harness, stack, { protocol: 'tcp', preferred_port: port });
    expect(preferred).toMatch(/^ok \d+$/);
    expect(preferred).not.toBe(`ok ${port}`);
    expect(await ann.ask(harness, stack, { protocol: 'tcp', remote_port: port })).toBe(`ok ${port}`);
    expect((await ann.release(id)).status).toBe(204);
    expect(await ben.ask(harness, stack, { protocol: 'tcp', remote_port: port })).toBe(portInUse(port));
  });

  it('that was used but not reserved is free for other accounts', async ({ harness }) => {
    const port = freePortOf(2);
    expect(await ann.ask(harness, stack, { protocol: 'tcp', remote_port: port })).toBe(`ok ${port}`);
    await eventually(
      async () => expect(await ben.ask(harness, stack, { protocol: 'tcp', remote_port: port })).toBe(`ok ${port}`),
      SOON,
    );
  });

  it.for([
    ['out of the range', 'tcp', '1'],
    ['no number', 'tcp', 'shop'],
    ['with a sign', 'udp', '+20042'],
    ['with a zero in front', 'tcp', '020042'],
    ['hexadecimal', 'tcp', '0x4e4a'],
    ['with a fraction', 'tcp', '20042.0'],
    ['too large', 'tcp', '65536'],
    ['far too large', 'tcp', '1e400'],
    ['empty', 'tcp', ''],
  ] as const)('cannot be reserved if it is %s', async ([, kind, label]) => {
    expect((await ben.reserve({ kind, label })).status).toBe(400);
  });

  it('cannot be reserved while another account uses it', async ({ harness }) => {
    const port = freePortOf(3);
    const client = await ann.enter(harness, stack);
    expect(await client.ask({ protocol: 'tcp', remote_port: port })).toBe(`ok ${port}`);
    // The platform learns of unreserved ports from the records of the edge.
    await eventually(
      async () => expect((await ann.person.log()).map(({ label }) => label)).toContain(String(port)),
      SOON,
    );
    const { status, body } = await ben.reserve({ kind: 'tcp', label: String(port) });
    expect([status, body.error]).toEqual([409, `port ${port} is already in use`]);
    await client.leave();
  });
});

describe('reservations of another account', () => {
  it('are in no list and cannot be deleted, with the same response as for an unknown id', async () => {
    const name = freshName();
    const { id } = await reserved(ann, { kind: 'subdomain', label: name });
    expect(await ben.reservation(name)).toBeUndefined();
    const others = await ben.release(id);
    const unknown = await ben.release('00000000-0000-4000-8000-000000000000');
    expect([others.status, unknown.status]).toEqual([404, 404]);
    expect(others.body?.code).toBe(unknown.body?.code);
    expect((await ben.release('no-id')).status).toBe(404);
    expect((await ben.release(`${id}%00`)).status).toBe(404);
    expect(await ann.reservation(name)).toMatchObject({ id, state: 'reserved' });
  });

  it('are refused with a single message for held, reserved, released and open names', async ({ harness }) => {
    const held = await usedByAnn(harness);
    const kept = freshName();
    const released = freshName();
    const served = freshName();
    await reserved(ann, { kind: 'subdomain', label: kept });
    expect((await ann.release((await reserved(ann, { kind: 'subdomain', label: released })).id)).status).toBe(204);
    const client = await ann.enter(harness, stack);
    expect(await client.ask({ subdomain: served })).toBe(`ok ${served}`);
    for (const name of [held, kept, released, served]) {
      expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
      const { status, body } = await ben.reserve({ kind: 'subdomain', label: name });
      expect([status, body.error]).toEqual([409, `subdomain '${name}' is already in use`]);
      expect(JSON.stringify(body)).not.toContain(ann.person.email);
    }
  });
});
