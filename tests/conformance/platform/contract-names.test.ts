// Contract rows about reserved and held names and ports.
import { type Reservation, reservation, reservations } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, refusalOf } from './api-request.fixture.ts';
import {
  onSharedPlatform,
  PATIENCE_MS,
  PAYG_LIMIT,
  type Person,
  PlatformHarness,
  REGION,
} from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { openTunnel } from './tunnels.fixture.ts';

const LIMIT = PAYG_LIMIT;
const DAY_MS = 24 * 3_600_000;

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let bob: Person;
beforeAll(async () => {
  [ann, bob] = [await harness.person(), await harness.person()];
  await harness.db.updateTable('users').set({ plan: 'payg' }).where('id', 'in', [ann.id, bob.id]).execute();
});

const reserve = (who: Person, body: object): Promise<Answer> => harness.post('/reservations', body, who.token);
const reserved = async (who: Person, body: object, status = 201): Promise<Reservation> => {
  const answer = await reserve(who, body);
  expect([answer.status, answer.error]).toEqual([status, '']);
  return reservation.parse(answer.body);
};
const listOf = async (who: Person): Promise<Reservation[]> =>
  reservations.parse((await harness.get('/reservations', who.token)).body);
const release = (who: Person, id: string): Promise<Answer> =>
  harness.ask('DELETE', `/reservations/${id}`, { token: who.token });

/** Opens and closes a tunnel with the name, so that the name is held. */
const use = async (who: Person, subdomain: string): Promise<void> => {
  const { client } = await openTunnel(harness, who, { subdomain });
  expect((await listOf(who)).find(({ label }) => label === subdomain)).toMatchObject({
    state: 'held',
    active_tunnels: 1,
    expires_at: null,
  });
  await client.close();
};

describe('Contract', () => {
  it(row('Contract', 48), async () => {
    const first = await reserved(ann, { kind: 'subdomain', label: 'listed' });
    expect(first).toMatchObject({ kind: 'subdomain', region_id: null, state: 'reserved', active_tunnels: 0 });
    expect([first.last_used_at, first.expires_at]).toEqual([null, null]);
    expect(first.public_address).toContain('listed.localhost');
    await use(ann, 'used');
    await eventually(
      async () => {
        const held = (await listOf(ann)).find(({ label }) => label === 'used');
        const ends = Date.parse(held?.expires_at ?? '') - Date.parse(held?.last_used_at ?? '');
        expect(ends).toBe(30 * DAY_MS);
      },
      { timeoutMs: PATIENCE_MS },
    );
    const times = (await listOf(ann)).map(({ created_at }) => created_at);
    expect(times).toEqual(times.toSorted());
    expect(await listOf(bob)).toEqual([]);
  });

  it(row('Contract', 49), async () => {
    await use(ann, 'kept');
    const held = (await listOf(ann)).find(({ label }) => label === 'kept');
    const kept = await reserved(ann, { kind: 'subdomain', label: 'KEPT' });
    expect([kept.label, kept.id, kept.state]).toEqual(['kept', held?.id, 'reserved']);
    expect((await reserved(ann, { kind: 'subdomain', label: 'kept' }, 200)).id).toBe(kept.id);
    expect((await release(ann, kept.id)).status).toBe(204);
    expect((await reserved(ann, { kind: 'subdomain', label: 'kept' })).id).toBe(kept.id);
    const port = await reserved(ann, { kind: 'tcp' });
    expect([port.region_id, Number(port.label)]).toEqual([REGION, expect.any(Number)]);
    const name = await reserved(ann, { kind: 'subdomain' });
    expect(name.label).toMatch(/^[a-z0-9-]{12,63}$/);
    await reserved(ann, { kind: 'subdomain', label: '*.kept' });
  });

  it(row('Contract', 50), async () => {
    await reserved(ann, { kind: 'subdomain', label: 'taken' });
    const { label: port } = await reserved(ann, { kind: 'udp' });
    const inUse = (answer: Answer): unknown[] => [...refusalOf(answer), answer.error];
    expect(inUse(await reserve(bob, { kind: 'subdomain', label: 'taken' }))).toEqual([
      ...[409, 'TUNNEL_SUBDOMAIN_IN_USE'],
      "subdomain 'taken' is already in use",
    ]);
    expect(inUse(await reserve(bob, { kind: 'udp', label: port }))).toEqual([
      ...[409, 'TUNNEL_PORT_IN_USE'],
      `port ${port} is already in use`,
    ]);
    const refused = [
      ...['www', 'localhost', '-a', 'a_b', 'münchen', 'x'.repeat(64), 'a.b.c', '*'].map((label) => ({ label })),
      { label: 'a.taken' },
      { kind: 'tcp', label: '1' },
      { kind: 'tcp', label: 'shop' },
      { kind: 'tcp', region_id: 'nowhere' },
      { kind: 'p2p', label: 'shop' },
    ];
    for (const body of refused) expect((await reserve(ann, { kind: 'subdomain', ...body })).status).toBe(400);
  });

  it(row('Contract', 51), async () => {
    const usage = await harness.get('/usage', bob.token);
    expect(usage.body).toMatchObject({ reserved_limit: LIMIT });
    for (let nth = 0; nth < LIMIT; nth += 1) await reserved(bob, { kind: 'subdomain', label: `bobs-${nth}` });
    const over = await reserve(bob, { kind: 'subdomain', label: 'bobs-last' });
    expect([...refusalOf(over), over.error]).toEqual([
      ...[403, 'RESERVATION_LIMIT'],
      `reservation limit of ${LIMIT} reached`,
    ]);
    // Reserving a reserved name again does not count toward the limit.
    await reserved(bob, { kind: 'subdomain', label: 'bobs-0' }, 200);
  });

  it(row('Contract', 52), async () => {
    const { id } = await reserved(ann, { kind: 'subdomain', label: 'given-back' });
    for (const [who, of] of [
      [bob, id],
      [ann, '00000000-0000-4000-8000-000000000000'],
      [ann, 'no-id'],
    ] as const) {
      expect(refusalOf(await release(who, of))).toEqual([404, 'RESERVATION_UNKNOWN']);
    }
    const before = Date.now();
    expect((await release(ann, id)).status).toBe(204);
    const released = (await listOf(ann)).find((one) => one.id === id);
    expect(released?.state).toBe('released');
    expect(Math.abs(Date.parse(released?.expires_at ?? '') - before - 7 * DAY_MS)).toBeLessThan(60_000);
    expect((await reserve(bob, { kind: 'subdomain', label: 'given-back' })).status).not.toBe(201);
  });
});
