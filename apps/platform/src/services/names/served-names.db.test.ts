// A name or port in use by a tunnel cannot be reserved by another account from the moment the tunnel is admitted.
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Account,
  addEdge,
  createLinkFixture,
  type Edge,
  entryOf,
  type LinkFixture,
} from '../edges/link.fixture.ts';
import { ask, beginWithNoNames, closedAt, endpointOf, openedAt, tell } from './names.fixture.ts';
import { releaseReservation } from './reservations.ts';
import { reserve } from './reserve.ts';

let fixture: LinkFixture;
let unheld: LinkFixture;
let eu: Edge;
let ann: Account;
let bob: Account;
beforeAll(async () => {
  fixture = await createLinkFixture();
  unheld = { ...fixture, names: { hold_days: 0, assigned_hold_hours: 24, grace_days: 7 } };
  eu = await addEdge(fixture, 'eu');
  await sql`update edges set tcp_from = 20000, tcp_to = 20049, udp_from = 20000, udp_to = 20049`.execute(fixture.db);
});
beforeEach(async () => {
  [ann, bob] = await beginWithNoNames(fixture);
});
afterAll(() => fixture.close());

const tryReserve = async (account: Account, kind: 'subdomain' | 'tcp' | 'udp', label?: string) => {
  const actor = { kind: 'user', userId: account.accountId } as never;
  try {
    return (await reserve(unheld, actor, { kind, ...(label === undefined ? {} : { label }) })).reservation.label;
  } catch (error) {
    return (error as { code: string }).code;
  }
};
const askPort = (label: string | null, kind: 'tcp' | 'udp' = 'tcp') =>
  ask(unheld, eu, ann, endpointOf(label, { kind, asked: label !== null }), { protocol: kind });

describe('a TCP or UDP port', () => {
  it('counts as served once requested, and is free if its tunnel never opened', async () => {
    const { tunnelId } = await askPort('20042');
    expect(await tryReserve(bob, 'tcp', '20042')).toBe('TUNNEL_PORT_IN_USE');
    expect(await tryReserve(bob, 'udp', '20042')).toBe('20042');
    await tell(unheld, eu, [closedAt(unheld, tunnelId, true)]);
    expect(await entryOf(fixture.db, tunnelId)).toBeUndefined();
    expect(await tryReserve(bob, 'tcp', '20042')).toBe('20042');
  });

  it('in use by a requested tunnel is not assigned to a reservation of any port', async () => {
    for (let port = 20_000; port < 20_049; port += 1) await askPort(String(port));
    expect(await tryReserve(bob, 'tcp')).toBe('20049');
    expect(await tryReserve(bob, 'tcp')).toBe('TUNNEL_PORTS_EXHAUSTED');
  });

  it("can be reserved beyond an account's share only while over a quarter of the range is free", async () => {
    await fixture.db.updateTable('plans').set({ reserved_limit: null }).execute();
    const took = async (account: Account, count: number): Promise<string[]> => {
      const answers: string[] = [];
      for (let index = 0; index < count; index += 1) answers.push((await tryReserve(account, 'tcp')) ?? '');
      return answers;
    };
    const greedy = await took(ann, 40);
    expect(greedy.filter((answer) => /^\d+$/.test(answer))).toHaveLength(38);
    expect(greedy.slice(38)).toEqual(['TUNNEL_PORT_LIMIT', 'TUNNEL_PORT_LIMIT']);
    // A released port still counts, because other accounts cannot use it during the grace period.
    const [first = ''] = greedy;
    const reservation = await fixture.db
      .selectFrom('names')
      .select('id')
      .where('label', '=', first)
      .executeTakeFirstOrThrow();
    await releaseReservation(unheld, { kind: 'user', userId: ann.accountId } as never, reservation.id);
    expect(await tryReserve(ann, 'tcp')).toBe('TUNNEL_PORT_LIMIT');
    // The released port still belongs to the account and can be reserved again.
    expect(await tryReserve(ann, 'tcp', first)).toBe(first);
    expect((await took(bob, 12)).every((answer) => /^\d+$/.test(answer))).toBe(true);
    expect(await tryReserve(bob, 'tcp')).toBe('TUNNEL_PORTS_EXHAUSTED');
  });

  it('served by a tunnel counts for its account, which can reserve the served port', async () => {
    await fixture.db.updateTable('plans').set({ reserved_limit: null }).execute();
    for (let port = 20_000; port < 20_040; port += 1) await askPort(String(port));
    expect(await tryReserve(ann, 'tcp', '20045')).toBe('TUNNEL_PORT_LIMIT');
    expect(await tryReserve(ann, 'tcp', '20005')).toBe('20005');
    expect(await tryReserve(bob, 'tcp', '20045')).toBe('20045');
  });

  it('chosen by the edge counts as served once reported', async () => {
    const { tunnelId } = await askPort(null);
    const endpoint = endpointOf(null, { kind: 'tcp', asked: false });
    await tell(unheld, eu, [openedAt(unheld, eu, ann, tunnelId, '20007', endpoint)]);
    expect(await tryReserve(bob, 'tcp', '20007')).toBe('TUNNEL_PORT_IN_USE');
    expect(await tryReserve(ann, 'tcp', '20007')).toBe('20007');
  });

  it('of an older edge that reports no endpoint counts as served as well', async () => {
    const record = { ...openedAt(unheld, eu, ann, 'tun_before', '20008'), protocol: 'tcp' };
    await tell(unheld, eu, [record, openedAt(unheld, eu, ann, 'tun_before_2', 'old')]);
    expect(await tryReserve(bob, 'tcp', '20008')).toBe('TUNNEL_PORT_IN_USE');
    expect(await tryReserve(bob, 'subdomain', 'old')).toBe('TUNNEL_SUBDOMAIN_IN_USE');
  });
});

describe('a name without a hold', () => {
  it.each([
    ['a nested name', 'a.shop', 'http', 'a.shop'],
    ['a wildcard', '*.shop', 'http', '*.shop'],
    ['a tls tunnel', 'shop', 'tcp', 'shop.example.com'],
    ['a nested tls tunnel', 'a.shop', 'tcp', 'a.shop.example.com'],
  ] as const)('is in use while %s serves it', async (_what, wanted, protocol, label) => {
    const { tunnelId } = await ask(unheld, eu, ann, endpointOf(wanted), { protocol });
    expect(await tryReserve(bob, 'subdomain', 'shop')).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    await tell(unheld, eu, [{ ...openedAt(unheld, eu, ann, tunnelId, label, endpointOf(wanted)), protocol }]);
    expect(await tryReserve(bob, 'subdomain', 'shop')).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    await tell(unheld, eu, [closedAt(unheld, tunnelId)]);
    expect(await tryReserve(bob, 'subdomain', 'shop')).toBe('shop');
  });
});

it('a name or port is either served or reserved by another account if requested concurrently', async () => {
  for (let round = 0; round < 20; round += 1) {
    const label = `${20_000 + round}`;
    const [opened, reserved] = await Promise.all([askPort(label), tryReserve(bob, 'tcp', label)]);
    expect([opened.answer.ok, reserved]).toEqual(opened.answer.ok ? [true, 'TUNNEL_PORT_IN_USE'] : [false, label]);
    const name = `both-${round}`;
    const [tunnel, kept] = await Promise.all([
      ask(unheld, eu, ann, endpointOf(`a.${name}`)),
      tryReserve(bob, 'subdomain', name),
    ]);
    expect([tunnel.answer.ok, kept]).toEqual(tunnel.answer.ok ? [true, 'TUNNEL_SUBDOMAIN_IN_USE'] : [false, name]);
  }
});
