// The owner of an endpoint is checked before the endpoint is opened: questions to the backend for each registration, and the effects of
// its replies.
import { Fault } from '@tunnel/errors';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RequestedEndpoint } from '../backend/names/admission-request.ts';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

const HTTP = { protocol: 'http' } as const;
const KEY = 'a'.repeat(64);
const POOL = { ...HTTP, group: 'pool', group_key_hash: KEY } as const;

let fixture: ControlFixture;
let alice: RawClient;

const enter = async (token: string): Promise<RawClient> => (await RawClient.enter(fixture.port, token)).client;
const asked = (): (RequestedEndpoint | null)[] => fixture.backend.asked.map(({ endpoint }) => endpoint);
const inUse = (subdomain: string | null): Fault => new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: subdomain ?? '' });

beforeEach(async () => {
  fixture = await startControl({ clock: new FakeClock(), ports: 3 });
  alice = await enter('alice');
});
afterEach(() => fixture.stop());

describe('admission by the backend', () => {
  it('is requested for the exact endpoint of the tunnel, before the endpoint is leased', async () => {
    let heldWhenAsked: boolean | null = null;
    fixture.backend.onAsked = async () => {
      heldWhenAsked = fixture.tunnels.at({ kind: 'name', name: 'shop' }) !== undefined;
      return null;
    };
    await alice.registered({ ...HTTP, subdomain: 'Shop' });
    expect(heldWhenAsked).toBe(false);
    const { label } = await alice.registered({ ...HTTP, preferred_subdomain: 'was' });
    const assigned = await alice.registered(HTTP);
    const { to } = fixture.range;
    await alice.registered({ remote_port: to });
    await alice.registered({ preferred_port: to - 1 });
    const alone = { groupKeyHash: null, joinsGroup: false };
    expect(label).toBe('was');
    expect(asked()).toEqual([
      { kind: 'subdomain', label: 'shop', choice: 'asked', ...alone },
      { kind: 'subdomain', label: 'was', choice: 'preferred', ...alone },
      { kind: 'subdomain', label: assigned.label, choice: 'assigned', ...alone },
      { kind: 'tcp', label: String(to), choice: 'asked', ...alone },
      { kind: 'tcp', label: null, choice: 'assigned', ...alone },
    ]);
  });

  it('is requested for a new group and, as a joining member, for each further member', async () => {
    await alice.registered(POOL);
    const bob = await enter('bob');
    await bob.registered(POOL);
    expect(asked()).toMatchObject([
      { label: 'pool', choice: 'asked', groupKeyHash: KEY, joinsGroup: false },
      { label: 'pool', choice: 'asked', groupKeyHash: KEY, joinsGroup: true },
    ]);
    // A member with another group key is refused without asking the backend, which would otherwise learn the key.
    expect((await bob.refused({ ...POOL, group_key_hash: 'b'.repeat(64) })).code).toBe('GROUP_KEY_MISMATCH');
    expect(asked()).toHaveLength(2);
  });

  it('is requested with a group key hash valid for the exact name only', async () => {
    const keys = new Set<unknown>();
    for (const subdomain of ['shop', 'a.shop', 'b.shop', '*.shop']) {
      await alice.registered({ ...POOL, group: subdomain, subdomain });
      keys.add(asked().at(-1)?.groupKeyHash);
    }
    expect(keys.size).toBe(4);
    expect(keys).toContain(KEY);
    await alice.registered({ ...POOL, group: 'a.shop', subdomain: 'a.shop' });
    expect(keys).toContain(asked().at(-1)?.groupKeyHash);
  });

  it('is not requested for a name in use on this edge', async () => {
    await alice.registered({ ...HTTP, subdomain: 'shop' });
    const bob = await enter('bob');
    expect((await bob.refused({ ...HTTP, subdomain: 'shop' })).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect((await bob.refused({ ...POOL, subdomain: 'shop' })).code).toBe('GROUP_KEY_MISMATCH');
    expect(asked()).toHaveLength(1);
  });

  it('is refused with the name of the holding tunnel only for clients of the same account', async () => {
    const laptop = await RawClient.connect(fixture.port);
    laptop.send({ type: 'Auth', versions: [1], token: 'alice', client_name: 'laptop' });
    await laptop.next('AuthOk');
    await laptop.registered({ ...HTTP, name: 'web', subdomain: 'shop' });
    await laptop.registered({ ...POOL, name: 'one', subdomain: 'pool' });
    const bob = await enter('bob');
    await bob.registered({ ...POOL, name: 'two', subdomain: 'pool' });
    await bob.registered({ ...HTTP, name: 'secret', subdomain: 'theirs' });
    const holderOf = async (client: RawClient, subdomain: string) =>
      (await client.refused({ ...HTTP, subdomain })).held_by;
    const own = { name: 'web', client_name: 'laptop' };
    // The same computer and another computer of the account get the holder of the name, in any spelling of the name.
    expect(await holderOf(laptop, 'shop')).toEqual(own);
    expect(await holderOf(alice, 'SHOP')).toEqual(own);
    expect(await holderOf(alice, 'pool')).toEqual({ name: 'one', client_name: 'laptop' });
    // The holder’s client has not sent a computer name.
    expect(await holderOf(bob, 'pool')).toEqual({ name: 'two' });
    expect(await holderOf(bob, 'shop')).toBeUndefined();
    expect(await holderOf(alice, 'theirs')).toBeUndefined();
    expect(await holderOf(await enter('op'), 'shop')).toBeUndefined();
  });

  it('is not requested for names below a name used by the operator', async () => {
    const operator = await enter('op');
    await operator.registered({ ...HTTP, subdomain: 'news' });
    expect((await alice.refused({ ...HTTP, subdomain: 'a.news' })).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect((await alice.refused({ ...HTTP, subdomain: '*.news' })).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect(asked()).toHaveLength(1);
    // The owner serving the name can have more names below it, from any of its clients.
    await operator.registered({ ...HTTP, subdomain: '*.news' });
    const second = await enter('op');
    await second.registered({ ...HTTP, subdomain: 'a.news' });
    expect((await second.refused({ ...HTTP, subdomain: '*.news' })).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
  });

  it('is not requested again for a returning tunnel, but is for a tunnel with a new endpoint', async () => {
    const { tunnel_id } = await alice.registered({ ...HTTP, subdomain: 'shop' });
    expect((await alice.registered({ ...HTTP, subdomain: 'shop', tunnel_id })).tunnel_id).toBe(tunnel_id);
    expect(asked()).toHaveLength(1);
    fixture.backend.onAsked = async ({ endpoint }) => inUse(endpoint?.label ?? null);
    expect((await alice.refused({ ...HTTP, subdomain: 'others', tunnel_id })).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect(asked()).toHaveLength(2);
  });
});

describe('a name owned by another account', () => {
  it('is refused if the client asked for the name, and replaced by another name otherwise', async () => {
    const others = new Set(['shop', 'was']);
    let refusals = 0;
    fixture.backend.onAsked = async ({ endpoint }) => {
      const label = endpoint?.label ?? '';
      // The first generated name belongs to another account too.
      if (!others.has(label) && (endpoint?.choice !== 'assigned' || refusals >= 2)) return null;
      refusals += 1;
      return inUse(label);
    };
    expect(await alice.refused({ ...HTTP, subdomain: 'shop' })).toMatchObject({
      code: 'TUNNEL_SUBDOMAIN_IN_USE',
      message: "subdomain 'shop' is already in use",
    });
    const { label } = await alice.registered({ ...HTTP, preferred_subdomain: 'was' });
    expect(label).toMatch(/^[a-z]+-[a-z]+-[a-z0-9]{6}$/);
    expect(asked().map((endpoint) => endpoint?.choice)).toEqual(['asked', 'preferred', 'assigned']);
    // The backend is told the end of every admission, including the admission of the opened tunnel.
    expect(fixture.backend.sought).toEqual(fixture.backend.asked.map(({ tunnelId }) => tunnelId));
  });

  it('leads to an error after five generated names', async () => {
    fixture.backend.onAsked = async ({ endpoint }) => inUse(endpoint?.label ?? null);
    expect((await alice.refused(HTTP)).code).toBe('INTERNAL');
    expect(new Set(asked().map((endpoint) => endpoint?.label)).size).toBe(5);
  });
});

it('a member is admitted again as the first member if its group ends during the admission', async () => {
  await alice.registered(POOL);
  const bob = await enter('bob');
  let release = (): void => {};
  const waiting = new Promise<void>((resolve) => {
    release = resolve;
  });
  fixture.backend.onAsked = async ({ endpoint }) => {
    if (endpoint?.joinsGroup === true) await waiting;
    return null;
  };
  const joined = bob.registered(POOL);
  await eventually(() => expect(asked()).toHaveLength(2));
  alice.ws.terminate();
  await eventually(() => expect(fixture.tunnels.groups.size).toBe(0));
  release();
  expect((await joined).label).toBe('pool');
  expect(asked().map((endpoint) => endpoint?.joinsGroup)).toEqual([false, true, false]);
  const ids = fixture.backend.asked.map(({ tunnelId }) => tunnelId);
  expect(new Set(ids).size).toBe(3);
  expect((await joined).tunnel_id).toBe(ids[2]);
});

it('a port reserved for another account is skipped, or refused if the client asked for the port', async () => {
  const { from, to } = fixture.range;
  const label = String(from);
  fixture.backend.reserved.set({ kind: 'tcp', label, accountId: 'bob', groupKeyHash: KEY });
  expect(await alice.refused({ remote_port: from })).toMatchObject({
    code: 'TUNNEL_PORT_IN_USE',
    message: `port ${from} is already in use`,
  });
  expect((await alice.registered({ preferred_port: from })).assigned_port).toBe(from + 1);
  expect((await alice.registered()).assigned_port).toBe(to);
  expect((await alice.refused()).code).toBe('TUNNEL_PORTS_EXHAUSTED');
  // The port can be used with the key of its last group, and by the account with the reservation.
  const pool = { group: 'db', group_key_hash: KEY, remote_port: from };
  const { tunnel_id } = await alice.registered(pool);
  alice.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id });
  await alice.next('TunnelUnregistered');
  const bob = await enter('bob');
  expect((await bob.registered({ remote_port: from })).assigned_port).toBe(from);
});
