// Reports usage to the simulator through the real SDK: the simulator's totals must equal the usage.
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { systemClock } from '@tunnel/runtime';
import { Simulator } from '@tunnel/simulator';
import { seededRandom, temporaryDirectory } from '@tunnel/testkit';
import { sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { createProcessor } from '../processor/create-processor.ts';
import type { Processor } from '../processor/processor.ts';
import { accessOf } from '../processor/simulated-processor.fixture.ts';
import { type MeteredAccount, MeteringFixture } from './metering.fixture.ts';
import { Metering } from './metering.ts';

const HOUR = 3_600_000;
const ROUNDS = 12;

it("the processor's totals equal the usage to the byte, despite lost responses and three concurrent reporters", async () => {
  const fixture = await MeteringFixture.create();
  const folder = await temporaryDirectory();
  const { db } = fixture;
  const { logger } = fixture.fixture;
  const simulator = new Simulator({
    folder: join(folder.path, 'simulator'),
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    logger,
    portKey: 'port',
    webhookUrl: () => null,
  });
  await simulator.start();
  onTestFinished(async () => {
    await simulator.stop();
    await folder.close();
    await fixture.close();
  });
  const processor = createProcessor({
    ...accessOf({ simulator }),
    prices: { minimumCents: 300, priceCentsPerGb: 10 },
    logger,
  });
  const accounts = await Promise.all([1, 2, 3, 4].map((nth) => addCustomer(fixture, processor, nth)));
  const random = seededRandom(7);
  const lossy = loseAnswers(processor, random);
  const processes = [1, 2, 3].map(() => new Metering({ db, clock: systemClock, logger, processor: lossy, random }));

  const month = new Date().toISOString().slice(0, 7);
  for (let round = 0; round < ROUNDS; round += 1) {
    const used = accounts.map((account) => fixture.use(account, 1 + Math.floor(random() * 5_000_000_000), month));
    const flushed = processes.flatMap((metering) =>
      // A flush with a lost response rejects; the event is sent again by the next flush.
      accounts.map(({ userId }) => metering.flush(userId).catch(() => {})),
    );
    await Promise.all([...used, ...flushed]);
  }
  const calm = new Metering({ db, clock: systemClock, logger, processor });
  for (const { userId } of accounts) await calm.flush(userId);

  const { rows } = await sql<{ user_id: string; bytes: number }>`select user_id, bytes from metered_usage`.execute(db);
  const usedBy = new Map(rows.map(({ user_id, bytes }) => [user_id, bytes]));
  const range = { from: Date.now() - HOUR, to: Date.now() + HOUR };
  for (const { userId, customerId } of accounts) {
    expect(await processor.meteredBytes({ customerId, ...range })).toBe(usedBy.get(userId));
  }
  expect((await fixture.events()).some(({ attempts }) => attempts > 1)).toBe(true);
});

const addCustomer = async (fixture: MeteringFixture, processor: Processor, nth: number): Promise<MeteredAccount> => {
  const userId = `user-${nth}`;
  return fixture.addAccount(await processor.ensureCustomer({ userId, email: `${userId}@example.com`, name: null }));
};

/** Accepts every event, but fails a third of the calls afterwards, as if the response were lost. */
const loseAnswers = (processor: Processor, random: () => number): Pick<Processor, 'reportUsage' | 'meteredBytes'> => ({
  meteredBytes: (range) => processor.meteredBytes(range),
  reportUsage: async (event) => {
    await processor.reportUsage(event);
    if (random() < 1 / 3) throw new Fault('BILLING_PROCESSOR_AWAY');
  },
});
