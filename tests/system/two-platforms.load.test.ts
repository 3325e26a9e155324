// Test of two platforms on the same database: each task is done by only one platform. The first platform runs the simulator, which the
// second platform uses as a remote payment processor.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, monthWithRoom } from '@tunnel/testkit';
import { expect } from 'vitest';
import { createTestDatabase } from '../../apps/platform/src/db/test-database.fixture.ts';
import { it } from './in-process.fixture.ts';
import { askSimulator, mailsTo, type Payer, reportedBytes, signUpPayer } from './payer.fixture.ts';
import { MANY_LOGINS } from './platform-test.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { UsageReportingEdge } from './usage-reporting-edge.fixture.ts';

const SOON = { timeoutMs: 60_000 };
/** Time in milliseconds that the test takes on a busy machine. */
const ROOM_MS = 120_000;
const PAYERS = 6;
/** Bytes that cost a cent, at 10 cents for 10^9 bytes. */
const CENT = 100_000_000;

it(
  'two platforms on the same database report each usage event and write each mail once',
  async ({ harness }) => {
    await monthWithRoom(ROOM_MS);
    const database = harness.use(await createTestDatabase());
    const databaseUrl = database.url.reveal();
    const first = await harness.stack({ command: 'platform', databaseUrl, tables: MANY_LOGINS });
    const payers = await Promise.all(Array.from({ length: PAYERS }, () => signUpPayer(first)));
    const edges = [await UsageReportingEdge.join(first)];
    const use = (payer: Payer, bytes: number) => edges[edges.length - 1]?.tell(payer, bytes);
    for (const payer of payers) await use(payer, 7 * CENT + 1);

    // The second platform reports pending usage at its start, while the end of the month makes the first platform report the same usage.
    const second = harness.stack({
      command: 'platform',
      platform: `secret_key_file = "${join(first.dataDir, 'master-key')}"`,
      databaseUrl,
      tables: `${MANY_LOGINS}\n${processorAt(first)}`,
    });
    await Promise.all([second, endMonth(first)]);
    edges.push(await UsageReportingEdge.join(await second));
    const both = [first, await second];
    await eventually(async () => {
      const reported = await reportedBytes(first);
      expect(payers.map(({ customerId }) => reported.get(customerId))).toEqual(payers.map(() => 7 * CENT + 1));
    }, SOON);

    // Both platforms look for reached caps and for waiting mails.
    await Promise.all(
      payers.map((payer, at) => payer.client(both[at % 2] ?? first).setSpendCap({ spend_cap_cents: 10 })),
    );
    for (const payer of payers) await use(payer, 3 * CENT);
    await eventually(() => expect(subjectsOf(both, payers)).toEqual(payers.map(() => EXPECTED)), SOON);

    // Events for the usage up to the cap may be in transit by now.
    const events = await database.db.selectFrom('meter_events').select(['identifier', 'attempts']).execute();
    expect(events.filter(({ identifier }) => identifier.endsWith('-1'))).toEqual(
      payers.map(() => ({ identifier: expect.any(String), attempts: 1 })),
    );
    const notices = await database.db.selectFrom('cap_notices').selectAll().execute();
    expect(notices).toHaveLength(PAYERS);
    expect(subjectsOf(both, payers)).toEqual(payers.map(() => EXPECTED));
    const invoices = await Promise.all(payers.map((payer) => invoicesOf(both[1] ?? first, payer)));
    expect(invoices).toEqual(payers.map(() => [300]));
  },
  240_000 + ROOM_MS,
);

const EXPECTED = ['Spend limit of $0.10 reached', 'Verify your Hatchway email address'];

const processorAt = ({ dataDir, run }: Stack): string => {
  const secrets = JSON.parse(readFileSync(join(dataDir, 'simulator', 'secrets.json'), 'utf8')) as {
    secret_key: string;
    webhook_secret: string;
  };
  return [
    '[platform.billing]',
    'processor = "stripe"',
    `stripe_secret_key = "${secrets.secret_key}"`,
    `stripe_webhook_secret = "${secrets.webhook_secret}"`,
    `stripe_api_url = "${run.simulator_url}"`,
  ].join('\n');
};

const endMonth = async (stack: Stack): Promise<void> => {
  const now = new Date();
  const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  await askSimulator(stack, '/clock', { advance_secs: Math.ceil((end - now.getTime()) / 1000) + 2 * 3600 });
};

const invoicesOf = async (stack: Stack, payer: Payer): Promise<unknown[]> =>
  (await payer.client(stack).invoices()).invoices.map((invoice) => invoice['total']);

/** Returns the subjects of the mails to each payer, written by either platform. */
const subjectsOf = (stacks: readonly Stack[], payers: readonly Payer[]): string[][] =>
  payers.map(({ email }) =>
    stacks
      .flatMap((stack) => mailsTo(stack, email))
      .map((raw) => /^Subject: (.*)\r$/m.exec(raw)?.[1] ?? '')
      .toSorted(),
  );
