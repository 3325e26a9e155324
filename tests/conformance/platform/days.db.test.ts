// Usage per day and over the last thirty days, and log entries of an edge that died.
import type { UsageChartPoint } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type ClockedPerson, ClockedPlatform, DAY, MINUTE, SECOND } from './clocked-platform.fixture.ts';
import { row } from './rows.fixture.ts';

/** The last second of a day in UTC, which is a different date in time zones to the east. */
const NOW = Date.UTC(2030, 2, 1, 23, 59, 59);
const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

let platform: ClockedPlatform;
let person: ClockedPerson;
beforeAll(async () => {
  platform = await ClockedPlatform.start(NOW);
});
beforeEach(async () => {
  platform.clock.setWallClock(NOW);
  person = await platform.person();
});
afterAll(() => platform.close());

/** Stores usage for the day that was `daysAgo` days ago. */
const happened = (daysAgo: number, sums: { tunnels?: number; requests?: number; bytes?: number }): Promise<unknown> =>
  platform.database.db
    .insertInto('usage_daily')
    .values({ user_id: person.id, day: dayOf(NOW - daysAgo * DAY), ...sums })
    .execute();
const read = async <T>(path: string): Promise<T> => {
  const { token } = await platform.enter(person.email);
  return (await platform.ask('GET', path, { token })).body as T;
};

it(row('Limits', 8), async () => {
  await happened(0, { tunnels: 1, requests: 10, bytes: 100 });
  await happened(29, { tunnels: 2, requests: 20, bytes: 200 });
  await happened(30, { tunnels: 4, requests: 40, bytes: 400 });
  const sums = { total_tunnels_30d: 3, total_requests_30d: 30, total_bytes_30d: 300 };
  expect(await read('/usage')).toMatchObject(sums);
});

it(row('Contract', 25), async () => {
  await happened(29, { requests: 20 });
  expect(await read('/usage')).toMatchObject({ total_requests_30d: 20 });
  // A second later the next day begins, and the oldest day drops out of the sum.
  platform.pass(SECOND);
  expect(await read('/usage')).toMatchObject({ total_requests_30d: 0 });
});

it(row('Contract', 25, 'sums beyond 32 bits'), async () => {
  await happened(0, { requests: 2 ** 40, bytes: 2 ** 50 });
  await happened(1, { requests: 2 ** 40, bytes: 2 ** 50 });
  expect(await read('/usage')).toMatchObject({ total_requests_30d: 2 ** 41, total_bytes_30d: 2 ** 51 });
});

it(row('Contract', 24), async () => {
  await happened(0, { tunnels: 1, requests: 10, bytes: 100 });
  await happened(2, { tunnels: 3, requests: 30, bytes: 300 });
  await happened(90, { tunnels: 9, requests: 90 });
  expect(await read('/usage/chart?days=3')).toEqual([
    { date: '2030-02-27', tunnels: 3, requests: 30, bytes: 300 },
    { date: '2030-02-28', tunnels: 0, requests: 0, bytes: 0 },
    { date: '2030-03-01', tunnels: 1, requests: 10, bytes: 100 },
  ]);
  const all = await read<UsageChartPoint[]>('/usage/chart?days=90');
  expect(all.map(({ date }) => date)).toEqual(
    Array.from({ length: 90 }, (_, index) => dayOf(NOW - (89 - index) * DAY)),
  );
  expect(all.reduce((sum, { requests }) => sum + requests, 0)).toBe(40);
  platform.pass(SECOND);
  expect(await read('/usage/chart?days=2')).toEqual([
    { date: '2030-03-01', tunnels: 1, requests: 10, bytes: 100 },
    { date: '2030-03-02', tunnels: 0, requests: 0, bytes: 0 },
  ]);
});

it(row('Contract', 26), async () => {
  const { db } = platform.database;
  const heardAt = new Date(platform.clock.now());
  const edge = await db
    .insertInto('edges')
    .values({ name: 'far', credential_hash: 'f'.repeat(64), run_id: 'run', last_heartbeat_at: heardAt })
    .returning('id')
    .executeTakeFirstOrThrow();
  const entry = { user_id: person.id, edge_id: edge.id, run_id: 'run', tunnel_id: 'tun_1', protocol: 'http' };
  await db
    .insertInto('tunnel_log')
    .values({ ...entry, label: 'web', registered_at: new Date(heardAt.getTime() - MINUTE) })
    .execute();
  expect(await read('/usage')).toMatchObject({ active_tunnels: 1 });
  await platform.clock.advance(30 * SECOND);
  expect(await read('/usage')).toMatchObject({ active_tunnels: 1 });
  await platform.clock.advance(20 * SECOND);
  await eventually(async () => {
    // The job queries a real database while the clock jumps. If a run comes too early, the next run makes up for it.
    await platform.clock.advance(10 * SECOND);
    expect(await read('/usage')).toMatchObject({ active_tunnels: 0 });
  });
  expect(await read('/usage/tunnels/tun_1')).toMatchObject({ unregistered_at: heardAt.toISOString() });
});
