// Tests of kill -9 of the platform or the edge: carried traffic is charged exactly once. The platform and its remote edges talk over
// HTTP.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { countedEcho, countedSource } from './counted-service.fixture.ts';
import { Harness, it as harnessIt } from './in-process.fixture.ts';
import { MANY_LOGINS, openWith, Person, startEdgeOf } from './platform-test.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { sendAndReadAll, visit } from './visitor.fixture.ts';

const SOON = { timeoutMs: 30_000 };
const SIZE = 20_000;

/** Platform shared by the tests of the file. Platform and edges restart on their previous ports. */
const it = harnessIt.extend<{ platform: Stack }>({
  platform: [
    async ({ task: _ }, use) => {
      const harness = new Harness();
      await use(await harness.stack({ command: 'platform', programs: true, fixedPorts: true, tables: MANY_LOGINS }));
      await harness.close();
    },
    { scope: 'file' },
  ],
});

const startOne = async (
  harness: Harness,
  platform: Stack,
  region: string,
): Promise<{ edge: Stack; person: Person }> => ({
  edge: await startEdgeOf(harness, platform, region, { fixedPorts: true }),
  person: await Person.signUp(platform),
});

const charged = async (person: Person): Promise<[number, number]> => {
  const { total_requests_30d, total_bytes_30d } = await person.usage();
  return [total_requests_30d, total_bytes_30d];
};

/** Returns the usage in bytes that the edge has on disk and the platform has not received. */
const journalledBytes = ({ dataDir }: Stack): number => {
  const folder = join(dataDir, 'edge-journal');
  const newest = readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .at(-1);
  return readFileSync(join(folder, newest ?? ''), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{"kind":"usage"'))
    .reduce((sum, line) => sum + (JSON.parse(line) as { bytes: number }).bytes, 0);
};

interface Arrival {
  readonly at: number;
  /** Total bytes received so far. */
  readonly total: number;
}

/** Returns the maximum number of bytes received within any interval of the given milliseconds. */
const mostWithin = (arrivals: readonly Arrival[], ms: number): number => {
  let most = 0;
  let first = 0;
  for (const { at, total } of arrivals) {
    while (at - (arrivals[first]?.at ?? at) > ms) first += 1;
    most = Math.max(most, total - (arrivals[first - 1]?.total ?? 0));
  }
  return most;
};

it('after kills of the platform under traffic, the requests and bytes of all visits are charged exactly', async ({
  harness,
  platform,
}) => {
  const { edge, person } = await startOne(harness, platform, 'busy');
  const echo = harness.use(await countedEcho());
  const { assigned_port } = await (await openWith(harness, edge, await person.newKey(), ['tcp', echo.port])).ready();
  let visits = 0;
  let isOver = false;
  const traffic = (async () => {
    while (!isOver) {
      await sendAndReadAll(assigned_port, Buffer.alloc(SIZE, 'v'));
      visits += 1;
    }
  })();
  const more = (count: number) => {
    const wanted = visits + count;
    return eventually(() => expect(visits).toBeGreaterThan(wanted), SOON);
  };
  for (let kills = 0; kills < 2; kills += 1) {
    await more(20);
    await platform.kill();
    await more(20);
    await platform.start();
  }
  await more(20);
  isOver = true;
  await traffic;
  expect(echo.bytes).toBe(visits * SIZE * 2);
  await eventually(async () => expect(await charged(person)).toEqual([visits, echo.bytes]), SOON);
}, 180_000);

it('usage that an idle edge had not reported before a kill is reported by its next run', async ({
  harness,
  platform,
}) => {
  const { edge, person } = await startOne(harness, platform, 'idle');
  const echo = harness.use(await countedEcho());
  const tunnel = await openWith(harness, edge, await person.newKey(), ['tcp', echo.port]);
  const { assigned_port } = await tunnel.ready();
  // The stopped platform receives no reports, so only the journal of the edge records the visits.
  platform.program.signal('SIGSTOP');
  for (let visits = 0; visits < 3; visits += 1) await sendAndReadAll(assigned_port, Buffer.alloc(SIZE, 'v'));
  await eventually(() => expect(journalledBytes(edge)).toBe(3 * SIZE * 2), SOON);
  await edge.kill();
  await edge.start();
  platform.program.signal('SIGCONT');
  await eventually(async () => expect(await charged(person)).toEqual([3, 3 * SIZE * 2]), SOON);
  await tunnel.waitFor('reconnected');
  await sendAndReadAll(assigned_port, Buffer.alloc(SIZE, 'v'));
  await eventually(async () => expect(await charged(person)).toEqual([4, 4 * SIZE * 2]), SOON);
}, 180_000);

it('an edge killed during a transfer never charges more than it carried, and misses at most the last 100 ms', async ({
  harness,
  platform,
}) => {
  const { edge, person } = await startOne(harness, platform, 'mid');
  const source = harness.use(await countedSource());
  const tunnel = await openWith(harness, edge, await person.newKey(), ['tcp', source.port]);
  const { assigned_port } = await tunnel.ready();
  const visitor = await visit(assigned_port);
  const arrivals: Arrival[] = [{ at: performance.now(), total: 0 }];
  const received = () => arrivals.at(-1)?.total ?? 0;
  visitor.on('data', (piece: Buffer) => arrivals.push({ at: performance.now(), total: received() + piece.length }));
  await eventually(() => expect(received()).toBeGreaterThan(60_000_000), SOON);
  const over = new Promise((resolve) => visitor.on('error', () => {}).once('close', resolve));
  await edge.kill();
  visitor.end();
  await over;
  await edge.start();
  await tunnel.waitFor('reconnected');
  // The promised 100 ms, with a tolerance for a busy machine.
  const least = received() - mostWithin(arrivals, 300);
  await eventually(async () => expect((await charged(person))[1]).toBeGreaterThanOrEqual(least), SOON);
  expect((await charged(person))[1]).toBeLessThanOrEqual(source.bytes);
}, 180_000);
