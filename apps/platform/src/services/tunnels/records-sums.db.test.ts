// In any order of sends, losses and retries by an edge, the sums equal its records.
import type { JournalRecord } from '@tunnel/contract';
import { randomId } from '@tunnel/runtime';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Account,
  addAccount,
  addEdge,
  createLinkFixture,
  daysOf,
  type Edge,
  entryOf,
  type LinkFixture,
  NOON,
  openedOf,
  questionOf,
  tunnelCountOf,
} from '../edges/link.fixture.ts';
import { dayOf } from './entry-changes.ts';
import { openTunnel } from './open-tunnel.ts';
import { storeRecords } from './store-records.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const TUNNELS = 4;
/** Number of tunnels requested from the platform. The last tunnel was opened while the platform was unavailable. */
const ASKED = TUNNELS - 1;

let fixture: LinkFixture;
beforeAll(async () => {
  fixture = await createLinkFixture();
});
afterAll(() => fixture.close());

const steps = fc.array(
  fc.record({
    tunnel: fc.nat(TUNNELS - 1),
    requests: fc.nat(1000),
    bytes: fc.nat(2 ** 40),
    days: fc.integer({ min: -2, max: 2 }),
    closes: fc.boolean(),
  }),
  { minLength: 1, maxLength: 60 },
);
/** Batches sent concurrently, as ranges of the journal in any order and overlap. */
const sends = fc.array(fc.record({ from: fc.nat(70), size: fc.integer({ min: 1, max: 30 }) }), { maxLength: 12 });

interface Step {
  readonly tunnel: number;
  readonly requests: number;
  readonly bytes: number;
  readonly days: number;
  readonly closes: boolean;
}

const recordsOf = (ids: readonly string[], edge: Edge, account: Account, drawn: readonly Step[]) => [
  ...ids.map((id) => openedOf(edge, account, id)),
  ...drawn.map(({ tunnel, requests, bytes, days, closes }): JournalRecord => {
    const tunnel_id = ids[tunnel] ?? '';
    const at = NOON + days * DAY_MS;
    return closes
      ? { kind: 'closed', tunnel_id, at, abandoned: false }
      : { kind: 'usage', tunnel_id, requests, bytes, at };
  }),
];

/** Sends several batches concurrently, then the missing records as an edge does: from the record after the last stored record. */
const deliver = async (edge: Edge, records: JournalRecord[], drawn: { from: number; size: number }[]) => {
  const journal_id = randomId('jrn');
  const send = (first: number, some: JournalRecord[]) =>
    storeRecords(fixture, edge.actor, { run_id: edge.runId, journal_id, first, records: some });
  const early = drawn
    .map(({ from, size }) => ({ first: from + 1, some: records.slice(from, from + size) }))
    .filter(({ some }) => some.length > 0);
  await Promise.all(early.map(({ first, some }) => send(first, some)));
  const { last_record } = await send(1, records.slice(0, 1));
  await Promise.all([1, 2].map(() => send(last_record + 1, records.slice(last_record))));
  const end = await send(1, records);
  expect(end).toEqual({ last_record: records.length, refused: null });
};

it('for any interleaving of sends and retries, the sums equal the records', async () => {
  await fc.assert(
    fc.asyncProperty(steps, sends, async (drawn, batches) => {
      const account = await addAccount(fixture.db);
      const edge = await addEdge(fixture);
      const ids = Array.from({ length: TUNNELS }, () => randomId('tun'));
      const records = recordsOf(ids, edge, account, drawn);
      // Requests the tunnels while their records are already being sent.
      const asked = ids
        .slice(0, ASKED)
        .map((id) => openTunnel(fixture, edge.actor, questionOf(edge, account, { tunnel_id: id })));
      await Promise.all([deliver(edge, records, batches), ...asked]);

      const used = records.filter((record) => record.kind === 'usage');
      for (const id of ids) {
        const own = used.filter((record) => record.tunnel_id === id);
        expect(await entryOf(fixture.db, id)).toMatchObject({
          label: 'web',
          request_count: sum(own.map((record) => record.requests)),
          bytes_proxied: sum(own.map((record) => record.bytes)),
        });
      }
      for (const { day, tunnels, requests, bytes } of await daysOf(fixture.db, account.accountId)) {
        const own = used.filter((record) => dayOf(new Date(record.at)) === day);
        expect({ requests, bytes }).toEqual({
          requests: sum(own.map((record) => record.requests)),
          bytes: sum(own.map((record) => record.bytes)),
        });
        expect(tunnels).toBe(day === dayOf(new Date(NOON)) ? TUNNELS : 0);
      }
      expect(await tunnelCountOf(fixture.db, account.keyId)).toBe(TUNNELS);
    }),
    { numRuns: 15 },
  );
}, 120_000);

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
