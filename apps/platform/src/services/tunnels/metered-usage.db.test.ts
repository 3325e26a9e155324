import type { JournalRecord } from '@tunnel/contract';
import { createLogger, randomId } from '@tunnel/runtime';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { billingMonth } from '../../billing/rules/rating.rules.ts';
import { Database } from '../../db/database.ts';
import { addBilledAccount, meteredOf } from '../billing/billed-account.fixture.ts';
import {
  type Account,
  addAccount,
  addEdge,
  createLinkFixture,
  daysOf,
  type Edge,
  type LinkFixture,
  NOON,
  openedOf,
} from '../edges/link.fixture.ts';
import { MONTH_LATE_MS, storeRecords } from './store-records.ts';

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
/** First moment of the month after NOON. */
const JULY = Date.UTC(2030, 6, 1);

let fixture: LinkFixture;
let edge: Edge;
beforeAll(async () => {
  fixture = await createLinkFixture();
  edge = await addEdge(fixture);
});
beforeEach(() => fixture.clock.setWallClock(NOON));
afterAll(() => fixture.close());

const usage = (tunnel_id: string, bytes: number, at = NOON): JournalRecord => ({
  kind: 'usage',
  tunnel_id,
  requests: 1,
  bytes,
  at,
});

/** Stores the records of a new tunnel in a separate journal. */
const carry = async (account: Account, used: readonly (readonly [bytes: number, at: number])[], by = edge) => {
  const id = randomId('tun');
  const first = Math.min(...used.map(([, at]) => at));
  const records = [openedOf(by, account, id, first), ...used.map(([bytes, at]) => usage(id, bytes, at))];
  await storeRecords(fixture, by.actor, { run_id: by.runId, journal_id: randomId('jrn'), first: 1, records });
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const carriedBy = async ({ accountId }: Account) =>
  sum((await daysOf(fixture.db, accountId)).map(({ bytes }) => bytes));
const meteredBy = async ({ accountId }: Account) =>
  sum((await meteredOf(fixture.db, accountId)).map(({ bytes }) => bytes));

describe('metered usage', () => {
  it('includes only usage since the start of the subscription, however late it is reported', async () => {
    const account = await addBilledAccount(fixture.db, { meteredFrom: NOON });
    await carry(account, [
      [1, NOON - DAY_MS],
      [20, NOON - 1],
      [300, NOON],
      [4000, NOON + 1],
    ]);
    // A delayed journal: its usage from before the subscription is not billed.
    await carry(account, [[50_000, NOON - 2]]);
    expect(await meteredOf(fixture.db, account.accountId)).toEqual([{ month: '2030-06', bytes: 4300 }]);
    expect(await carriedBy(account)).toBe(54_321);
  });

  it('is zero for plans without a price and for accounts without a subscription', async () => {
    const free = await addAccount(fixture.db);
    const given = await addAccount(fixture.db, 'payg');
    const ended = await addBilledAccount(fixture.db);
    await fixture.db.updateTable('users').set({ plan: 'free' }).where('id', '=', ended.accountId).execute();
    for (const account of [free, given, ended]) {
      await carry(account, [[700, NOON]]);
      expect(await meteredOf(fixture.db, account.accountId)).toEqual([]);
      expect(await carriedBy(account)).toBe(700);
    }
  });

  it('continues while a payment is past due', async () => {
    const account = await addBilledAccount(fixture.db, { pastDueSince: NOON - DAY_MS });
    await carry(account, [[9, NOON]]);
    expect(await meteredBy(account)).toBe(9);
  });

  it('belongs to the UTC month of the usage, or to the current month once that month is closed', async () => {
    const account = await addBilledAccount(fixture.db);
    fixture.clock.setWallClock(JULY + MONTH_LATE_MS - 1);
    await carry(account, [
      [1, JULY - 1],
      [20, JULY],
    ]);
    expect(await meteredOf(fixture.db, account.accountId)).toEqual([
      { month: '2030-06', bytes: 1 },
      { month: '2030-07', bytes: 20 },
    ]);
    fixture.clock.setWallClock(JULY + MONTH_LATE_MS);
    await carry(account, [
      [300, JULY - 1],
      // A record of an edge with a clock a month ahead.
      [4000, JULY + 40 * DAY_MS],
    ]);
    expect(await meteredOf(fixture.db, account.accountId)).toEqual([
      { month: '2030-06', bytes: 1 },
      { month: '2030-07', bytes: 4320 },
    ]);
  });

  it('plus earlier usage equals the daily sums, for any records from two edges, each sent twice', async () => {
    const records = fc.array(fc.record({ bytes: fc.nat(2 ** 40), hours: fc.integer({ min: -72, max: 24 * 20 }) }), {
      minLength: 1,
      maxLength: 30,
    });
    await fc.assert(
      fc.asyncProperty(records, records, fc.integer({ min: -48, max: 48 }), async (here, there, start) => {
        const meteredFrom = NOON + start * HOUR_MS;
        fixture.clock.setWallClock(JULY + HOUR_MS / 2);
        const account = await addBilledAccount(fixture.db, { meteredFrom });
        const edges = [await addEdge(fixture), await addEdge(fixture)];
        await Promise.all([sendTwice(account, edges[0]!, here), sendTwice(account, edges[1]!, there)]);
        const all = [...here, ...there].map(({ bytes, hours }) => ({ bytes, at: NOON + hours * HOUR_MS }));
        const paid = all.filter(({ at }) => at >= meteredFrom);
        const before = sum(all.filter(({ at }) => at < meteredFrom).map(({ bytes }) => bytes));
        expect((await meteredBy(account)) + before).toBe(await carriedBy(account));
        for (const { month, bytes } of await meteredOf(fixture.db, account.accountId)) {
          const own = paid.filter(({ at }) => monthOf(at) === month);
          expect(bytes).toBe(sum(own.map((record) => record.bytes)));
        }
      }),
      { numRuns: 15 },
    );
  }, 120_000);

  const monthOf = (at: number): string => billingMonth(at, fixture.clock.now(), MONTH_LATE_MS);

  const sendTwice = async (account: Account, by: Edge, used: readonly { bytes: number; hours: number }[]) => {
    const id = randomId('tun');
    const records = [
      openedOf(by, account, id),
      ...used.map(({ bytes, hours }) => usage(id, bytes, NOON + hours * HOUR_MS)),
    ];
    const batch = { run_id: by.runId, journal_id: randomId('jrn'), first: 1, records };
    await Promise.all([storeRecords(fixture, by.actor, batch), storeRecords(fixture, by.actor, batch)]);
  };
});

describe('two edges in two processes', () => {
  it('report usage of the same accounts without a deadlock', async () => {
    const accounts = await Promise.all(Array.from({ length: 8 }, () => addBilledAccount(fixture.db)));
    const edges = [await addEdge(fixture), await addEdge(fixture)];
    const logger = createLogger({ format: 'json', level: 'silent' });
    const other = new Database({ url: fixture.database.url, logger, connections: 10 });
    try {
      const send = async (by: Edge, index: number) => {
        const context = index % 2 === 0 ? fixture : { ...fixture, db: other.db };
        const order = index % 2 === 0 ? accounts : accounts.toReversed();
        const records = order.flatMap((account) => {
          const id = randomId('tun');
          return [openedOf(by, account, id), usage(id, 10), usage(id, 1, NOON - 20 * DAY_MS)];
        });
        const batch = { run_id: by.runId, journal_id: randomId('jrn'), first: 1, records };
        await storeRecords(context, by.actor, batch);
      };
      // PostgreSQL would abort a deadlocked transaction, and the promise would reject.
      await Promise.all(Array.from({ length: 20 }, (_, index) => send(edges[index % 2]!, index)));
    } finally {
      await other.close();
    }
    for (const account of accounts) {
      expect(await meteredOf(fixture.db, account.accountId)).toEqual([{ month: '2030-06', bytes: 220 }]);
      expect(await carriedBy(account)).toBe(220);
    }
  });
});
