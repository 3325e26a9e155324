import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { NOON } from '../../services/edges/link.fixture.ts';
import { cutUsage } from './meter-events.ts';
import { MeteringFixture } from './metering.fixture.ts';

let fixture: MeteringFixture;
beforeEach(async () => {
  fixture = await MeteringFixture.create();
});
afterEach(() => fixture.close());

const taken = () =>
  fixture.db
    .updateTable('meter_events')
    .set({ sent_at: new Date(NOON) })
    .execute();

it('cutting usage creates an event for the usage since the previous event, identified by account, month and number', async () => {
  const account = await fixture.addAccount();
  await fixture.use(account, 700);
  await fixture.use(account, 300);
  expect(await cutUsage(fixture.db, { now: NOON })).toBe(1);
  expect(await cutUsage(fixture.db, { now: NOON })).toBe(0);
  await taken();
  await fixture.use(account, 50);
  expect(await cutUsage(fixture.db, { now: NOON + 1 })).toBe(1);
  expect(await fixture.events()).toMatchObject([
    { identifier: `${account.userId}-2030-06-1`, month: '2030-06', bytes: 1000, occurred_at: new Date(NOON) },
    { identifier: `${account.userId}-2030-06-2`, month: '2030-06', bytes: 50, occurred_at: new Date(NOON + 1) },
  ]);
});

it('cutting usage creates no event for a month with an unsent event, but does for other months', async () => {
  const account = await fixture.addAccount();
  await fixture.use(account, 1, '2030-05');
  await cutUsage(fixture.db, { now: NOON });
  await fixture.use(account, 2, '2030-05');
  await fixture.use(account, 4, '2030-06');
  expect(await cutUsage(fixture.db, { now: NOON })).toBe(1);
  expect((await fixture.events()).map(({ month, bytes }) => [month, bytes])).toEqual([
    ['2030-05', 1],
    ['2030-06', 4],
  ]);
});

it('cutting usage dates usage of a past month to the last millisecond of the month', async () => {
  const account = await fixture.addAccount();
  await fixture.use(account, 1, '2030-05');
  await fixture.use(account, 1, '2029-12');
  await cutUsage(fixture.db, { now: NOON });
  const times = (await fixture.events()).map(({ occurred_at }) => occurred_at.toISOString()).toSorted();
  expect(times).toEqual(['2029-12-31T23:59:59.999Z', '2030-05-31T23:59:59.999Z']);
});

it('cutting usage skips accounts without a customer at the payment processor', async () => {
  const { userId } = await fixture.addAccount();
  await fixture.db.updateTable('billing_accounts').set({ customer_id: null }).execute();
  await fixture.use({ userId }, 5);
  expect(await cutUsage(fixture.db, { now: NOON })).toBe(0);
  expect(await cutUsage(fixture.db, { now: NOON, userId })).toBe(0);
});

it('cutting usage for a user ID creates events for no other account', async () => {
  const one = await fixture.addAccount();
  const other = await fixture.addAccount();
  await fixture.use(one, 1);
  await fixture.use(other, 2);
  expect(await cutUsage(fixture.db, { now: NOON, userId: other.userId })).toBe(1);
  expect(await fixture.events()).toMatchObject([{ user_id: other.userId, bytes: 2 }]);
});

it('cutting usage concurrently counts every byte in exactly one event while more usage comes in', async () => {
  const accounts = await Promise.all([1, 2, 3].map(() => fixture.addAccount()));
  const work: Promise<unknown>[] = [];
  for (let round = 1; round <= 40; round += 1) {
    for (const account of accounts) work.push(fixture.use(account, round));
    work.push(
      cutUsage(fixture.db, { now: NOON + round }),
      cutUsage(fixture.db, { now: NOON + round, userId: accounts[0]?.userId ?? '' }),
    );
    if (round % 5 === 0) work.push(taken());
  }
  await Promise.all(work);
  await taken();
  await cutUsage(fixture.db, { now: NOON });
  const { rows } = await sql<{ user_id: string; bytes: number }>`
    select user_id, sum(bytes)::bigint as bytes from meter_events group by user_id
  `.execute(fixture.db);
  expect(rows.map(({ bytes }) => bytes)).toEqual([820, 820, 820]);
});

it('cutting usage creates events for 2,300 accounts, more than a single statement handles', async () => {
  await sql`
    with added as (
      insert into users (email, plan) select n || '@example.com', 'payg' from generate_series(1, 2300) n returning id
    ), customers as (
      insert into billing_accounts (user_id, customer_id) select id, 'cus_' || id from added
    )
    insert into metered_usage (user_id, month, bytes) select id, '2030-06', 7 from added
  `.execute(fixture.db);
  expect(await cutUsage(fixture.db, { now: NOON })).toBe(2300);
});
