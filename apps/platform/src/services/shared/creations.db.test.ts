import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDomains, type DomainsFixture } from '../domains/domains.fixture.ts';
import { addDomain } from '../domains/own-domains.ts';
import { addAccount, createLinkFixture, type LinkFixture } from '../edges/link.fixture.ts';
import { createKey, revokeKey } from '../keys/keys.ts';
import { reserve } from '../names/reserve.ts';
import type { UserActor } from './service-context.ts';

let fixture: LinkFixture;
let domains: DomainsFixture;
let actor: UserActor;
beforeAll(async () => {
  fixture = await createLinkFixture();
  domains = createDomains(fixture);
  actor = { kind: 'user', userId: (await addAccount(fixture.db, 'payg')).accountId };
});
afterAll(() => fixture.close());

const madeToday = async (): Promise<number> => {
  const { created_count } = await fixture.db
    .selectFrom('users')
    .select('created_count')
    .where('id', '=', actor.userId)
    .executeTakeFirstOrThrow();
  return created_count;
};

it('new keys, reservations and domains count once each; existing, revoked and refused items do not count', async () => {
  const shop = { kind: 'subdomain', label: 'shop' } as const;
  const { id } = await createKey(fixture, actor, { label: 'laptop' });
  expect(await madeToday()).toBe(1);
  await reserve(fixture, actor, shop);
  await reserve(fixture, actor, shop);
  expect(await madeToday()).toBe(2);
  await addDomain(domains, actor, { name: 'shop.example' });
  await addDomain(domains, actor, { name: 'shop.example' });
  expect(await madeToday()).toBe(3);
  await revokeKey(fixture, actor, id);
  await expect(reserve(fixture, actor, { kind: 'subdomain', label: 'www' })).rejects.toThrow();
  expect(await madeToday()).toBe(3);
});

it('new keys, reservations and domains are refused at the daily limit, but existing items are not', async () => {
  const { settings } = fixture;
  const limited = { ...settings, limits: { ...settings.limits, creating_writes_per_day: 3 } };
  const refused = { code: 'API_WRITES_PER_DAY', values: { limit: 3, seconds: 12 * 60 * 60 } };
  await expect(createKey({ ...fixture, settings: limited }, actor, { label: 'x' })).rejects.toMatchObject(refused);
  const wanted = { kind: 'subdomain', label: 'other' } as const;
  await expect(reserve({ ...fixture, settings: limited }, actor, wanted)).rejects.toMatchObject(refused);
  const adding = addDomain({ ...domains, settings: limited }, actor, { name: 'other.example' });
  await expect(adding).rejects.toMatchObject(refused);
  expect(await madeToday()).toBe(3);
  // A call for an existing reservation is not refused.
  await reserve({ ...fixture, settings: limited }, actor, { kind: 'subdomain', label: 'shop' });
});

it('the daily count restarts each day, and a process with a slightly late clock does not reset it', async () => {
  const { accountId: userId } = await addAccount(fixture.db, 'payg');
  const other: UserActor = { kind: 'user', userId };
  const createAt = async (time: string): Promise<{ created_on: string | null; created_count: number }> => {
    const clock = { ...fixture.clock, now: () => Date.parse(time) } as typeof fixture.clock;
    await createKey({ ...fixture, clock }, other, { label: 'x' });
    const rows = sql<{ created_on: string; created_count: number }>`
      select created_on::text, created_count from users where id = ${userId}
    `;
    return (await rows.execute(fixture.db)).rows[0] ?? { created_on: null, created_count: 0 };
  };
  const day = (created_on: string, created_count: number) => ({ created_on, created_count });
  expect(await createAt('2026-03-01T23:59:59.900Z')).toEqual(day('2026-03-01', 1));
  expect(await createAt('2026-03-02T00:00:00.100Z')).toEqual(day('2026-03-02', 1));
  expect(await createAt('2026-03-01T23:59:59.950Z')).toEqual(day('2026-03-02', 2));
  expect(await createAt('2026-03-02T00:00:00.200Z')).toEqual(day('2026-03-02', 3));
  // After the correction of a clock that was days ahead, the account is not held to the wrong day.
  expect(await createAt('2026-04-01T00:00:00.000Z')).toEqual(day('2026-04-01', 1));
  expect(await createAt('2026-03-02T12:00:00.000Z')).toEqual(day('2026-03-02', 1));
});
