import type { JournalRecord } from '@tunnel/contract';
import { createLogger, randomId } from '@tunnel/runtime';
import type { QueryResult, RootOperationNode, UnknownRow } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '../../db/database.ts';
import { PATIENCE_MS } from '../../db/test-database.fixture.ts';
import { heartbeat } from '../edges/heartbeat.ts';
import {
  type Account,
  addAccount,
  addEdge,
  beatOf,
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
import { openTunnel } from './open-tunnel.ts';
import { storeRecords } from './store-records.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

let fixture: LinkFixture;
let account: Account;
let edge: Edge;
beforeAll(async () => {
  fixture = await createLinkFixture();
  account = await addAccount(fixture.db, 'payg');
  edge = await addEdge(fixture);
});
afterAll(() => fixture.close());

const usage = (tunnel_id: string, requests: number, bytes: number, at = NOON): JournalRecord => ({
  kind: 'usage',
  tunnel_id,
  requests,
  bytes,
  at,
});
const closed = (tunnel_id: string, at: number, abandoned = false): JournalRecord => ({
  kind: 'closed',
  tunnel_id,
  at,
  abandoned,
});
const batch = (journal_id: string, first: number, records: JournalRecord[], by: Edge = edge) => ({
  run_id: by.runId,
  journal_id,
  first,
  records,
});
/** Stores the records as the only batch of a new journal. */
const send = (records: JournalRecord[], by: Edge = edge) =>
  storeRecords(fixture, by.actor, batch(randomId('jrn'), 1, records, by));

describe('storing records of an edge', () => {
  it('adds the label of a requested tunnel without counting it again', async () => {
    const own = await addAccount(fixture.db);
    const question = questionOf(edge, own);
    await openTunnel(fixture, edge.actor, question);
    await send([openedOf(edge, own, question.tunnel_id, NOON + 50)]);
    expect(await entryOf(fixture.db, question.tunnel_id)).toMatchObject({
      label: 'web',
      registered_at: new Date(NOON),
      unregistered_at: null,
    });
    expect(await tunnelCountOf(fixture.db, own.keyId)).toBe(1);
    expect(await daysOf(fixture.db, own.accountId)).toMatchObject([{ tunnels: 1 }]);
  });

  it('keeps reported address and computer, and leaves both null for an older edge', async () => {
    const own = await addAccount(fixture.db);
    const asked = questionOf(edge, own, { client_name: 'laptop' });
    await openTunnel(fixture, edge.actor, asked);
    const unseen = {
      ...openedOf(edge, own, randomId('tun')),
      client_name: 'build box',
      public_url: 'tcp://t.example:9',
    };
    const old = openedOf(edge, own, randomId('tun'));
    const address = { client_name: 'laptop', public_url: 'https://web.t.example' };
    await send([{ ...openedOf(edge, own, asked.tunnel_id), ...address }, unseen as JournalRecord, old]);
    // Later records contain neither address nor computer.
    await send([usage(asked.tunnel_id, 1, 10), usage(old.tunnel_id, 1, 10)]);
    const told = async (id: string) => {
      const entry = await entryOf(fixture.db, id);
      return [entry?.public_url, entry?.client_name];
    };
    expect(await told(asked.tunnel_id)).toEqual(['https://web.t.example', 'laptop']);
    expect(await told(unseen.tunnel_id)).toEqual(['tcp://t.example:9', 'build box']);
    expect(await told(old.tunnel_id)).toEqual([null, null]);
  });

  it('adds a tunnel the platform never saw, with its usage by day', async () => {
    const own = await addAccount(fixture.db);
    const id = randomId('tun');
    await send([
      openedOf(edge, own, id, NOON - DAY_MS),
      usage(id, 1, 100, NOON - DAY_MS + 1),
      usage(id, 2, 200),
      usage(id, 3, 300, NOON + 1),
      closed(id, NOON + 2),
      // Connections of a tunnel may outlive the tunnel.
      usage(id, 0, 5, NOON + 3),
    ]);
    expect(await entryOf(fixture.db, id)).toMatchObject({
      registered_at: new Date(NOON - DAY_MS),
      unregistered_at: new Date(NOON + 2),
      request_count: 6,
      bytes_proxied: 605,
    });
    expect(await daysOf(fixture.db, own.accountId)).toEqual([
      { day: '2030-06-14', tunnels: 1, requests: 1, bytes: 100 },
      { day: '2030-06-15', tunnels: 0, requests: 5, bytes: 505 },
    ]);
    expect(await tunnelCountOf(fixture.db, own.keyId)).toBe(1);
  });

  it('deletes the entry and count of a tunnel that never opened', async () => {
    const own = await addAccount(fixture.db);
    const question = questionOf(edge, own);
    await openTunnel(fixture, edge.actor, question);
    await send([closed(question.tunnel_id, NOON + 1, true)]);
    expect(await entryOf(fixture.db, question.tunnel_id)).toBeUndefined();
    expect(await tunnelCountOf(fixture.db, own.keyId)).toBe(0);
    expect(await daysOf(fixture.db, own.accountId)).toMatchObject([{ tunnels: 0 }]);
  });

  it('keeps a tunnel that once opened, even if a later attempt was abandoned', async () => {
    const id = randomId('tun');
    await send([openedOf(edge, account, id), closed(id, NOON + 9, true)]);
    expect(await entryOf(fixture.db, id)).toMatchObject({ unregistered_at: new Date(NOON + 9) });
  });

  it('keeps the earlier of two ends, and never an end before the start', async () => {
    const a = randomId('tun');
    const b = randomId('tun');
    await send([openedOf(edge, account, a), closed(a, NOON + 5), closed(a, NOON + 9)]);
    expect(await entryOf(fixture.db, a)).toMatchObject({ unregistered_at: new Date(NOON + 5) });
    await send([openedOf(edge, account, b), closed(b, NOON - 5)]);
    expect(await entryOf(fixture.db, b)).toMatchObject({ unregistered_at: new Date(NOON) });
  });

  it('ignores records of other edges, unknown accounts and unknown tunnels, and stores the rest', async () => {
    const stranger = await addEdge(fixture);
    const mine = randomId('tun');
    const theirs = randomId('tun');
    await send([openedOf(stranger, account, theirs)], stranger);
    const nobody = { accountId: crypto.randomUUID(), keyId: account.keyId };
    const answer = await send([
      usage('tun_unknown', 1, 1),
      usage(theirs, 7, 7),
      closed(theirs, NOON),
      openedOf(edge, nobody, randomId('tun')),
      openedOf(edge, { accountId: 'alice', keyId: 'k' }, randomId('tun')),
      openedOf(edge, account, theirs),
      openedOf(edge, account, mine),
      usage(mine, 1, 1),
    ]);
    expect(answer).toMatchObject({ last_record: 8, refused: null });
    expect(await entryOf(fixture.db, theirs)).toMatchObject({ unregistered_at: null, request_count: 0 });
    expect(await entryOf(fixture.db, mine)).toMatchObject({ request_count: 1 });
  });

  it('replaces values that PostgreSQL cannot store instead of failing', async () => {
    const id = randomId('tun');
    const opened = { ...openedOf(edge, account, id), name: 'a\0b\ud800', key_id: 'no uuid' } as JournalRecord;
    await send([opened, usage(id, 1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)]);
    expect(await entryOf(fixture.db, id)).toMatchObject({ name: 'ab\ufffd', key_id: null });
  });

  it('closes tunnels of an ended run at their last sign of life', async () => {
    const own = await addEdge(fixture);
    const id = randomId('tun');
    await heartbeat(fixture, own.actor, beatOf('run_next'));
    await send([openedOf(own, account, id, NOON), usage(id, 1, 1, NOON + 700)], own);
    expect(await entryOf(fixture.db, id)).toMatchObject({
      unregistered_at: new Date(NOON + 700),
      presumed_closed: true,
    });
    await send([closed(id, NOON + 600)], own);
    expect(await entryOf(fixture.db, id)).toMatchObject({
      unregistered_at: new Date(NOON + 600),
      presumed_closed: false,
    });
  });
});

describe("an edge's journal of records", () => {
  const prepare = async () => {
    const own = await addAccount(fixture.db);
    const journal = randomId('jrn');
    const id = randomId('tun');
    const records = [openedOf(edge, own, id), ...Array.from({ length: 9 }, (_, i) => usage(id, 1, 10 ** i))];
    const sums = async () => {
      const entry = await entryOf(fixture.db, id);
      const [day] = await daysOf(fixture.db, own.accountId);
      expect({ requests: entry?.request_count, bytes: entry?.bytes_proxied }).toEqual({
        requests: day?.requests,
        bytes: day?.bytes,
      });
      expect(day?.tunnels).toBe(1);
      return entry?.bytes_proxied;
    };
    return { journal, records, sums };
  };

  it('is stored once if a batch is sent twice', async () => {
    const { journal, records, sums } = await prepare();
    for (const _ of [1, 2]) {
      expect(await storeRecords(fixture, edge.actor, batch(journal, 1, records))).toEqual({
        last_record: 10,
        refused: null,
      });
    }
    expect(await sums()).toBe(111_111_111);
  });

  it('is stored once if batches overlap', async () => {
    const { journal, records, sums } = await prepare();
    await storeRecords(fixture, edge.actor, batch(journal, 1, records.slice(0, 6)));
    const answer = await storeRecords(fixture, edge.actor, batch(journal, 3, records.slice(2)));
    expect(answer.last_record).toBe(10);
    await storeRecords(fixture, edge.actor, batch(journal, 2, records.slice(1, 4)));
    expect(await sums()).toBe(111_111_111);
  });

  it('rejects a batch after a gap, and returns the last stored number', async () => {
    const { journal, records, sums } = await prepare();
    await storeRecords(fixture, edge.actor, batch(journal, 1, records.slice(0, 4)));
    const answer = await storeRecords(fixture, edge.actor, batch(journal, 6, records.slice(5)));
    expect(answer).toMatchObject({ last_record: 4, refused: { code: 'EDGE_RECORDS_GAP' } });
    expect(await sums()).toBe(111);
  });

  it('is stored once if two processes receive the same batch concurrently', async () => {
    const { journal, records, sums } = await prepare();
    const logger = createLogger({ format: 'json', level: 'silent' });
    const other = new Database({ url: fixture.database.url, logger, connections: 10, timeoutMs: PATIENCE_MS });
    try {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          storeRecords(i % 2 === 0 ? fixture : { ...fixture, db: other.db }, edge.actor, batch(journal, 1, records)),
        ),
      );
      expect(new Set(answers.map((answer) => answer.last_record))).toEqual(new Set([10]));
    } finally {
      await other.close();
    }
    expect(await sums()).toBe(111_111_111);
  });

  it('is numbered separately per journal and edge', async () => {
    const { journal, records } = await prepare();
    const stranger = await addEdge(fixture);
    await storeRecords(fixture, edge.actor, batch(journal, 1, records));
    expect((await storeRecords(fixture, stranger.actor, batch(journal, 1, records.slice(0, 2)))).last_record).toBe(2);
  });

  it('stores a batch completely or not at all', async () => {
    const { journal, records } = await prepare();
    const broken = { ...fixture, db: fixture.db.withPlugin(failingAt('usage_daily')) };
    await expect(storeRecords(broken, edge.actor, batch(journal, 1, records))).rejects.toThrow('broken');
    expect(await entryOf(fixture.db, records[0]!.tunnel_id)).toBeUndefined();
    expect((await storeRecords(fixture, edge.actor, batch(journal, 1, records))).last_record).toBe(10);
  });
});

describe('a batch of a thousand records', () => {
  it('needs at most ten statements', async () => {
    const records = Array.from({ length: 250 }, () => randomId('tun')).flatMap((id) => [
      openedOf(edge, account, id),
      usage(id, 1, 1),
      usage(id, 1, 1, NOON + DAY_MS),
      closed(id, NOON + 2 * DAY_MS),
    ]);
    let statements = 0;
    const counted = { ...fixture, db: fixture.db.withPlugin(onEachQuery(() => (statements += 1))) };
    const answer = await storeRecords(counted, edge.actor, batch(randomId('jrn'), 1, records));
    expect(answer.last_record).toBe(1000);
    expect(statements).toBeLessThanOrEqual(10);
  });
});

function onEachQuery(seen: (sql: string) => void) {
  return {
    transformQuery: ({ node }: { node: RootOperationNode }) => {
      seen(JSON.stringify(node));
      return node;
    },
    transformResult: async ({ result }: { result: QueryResult<UnknownRow> }) => result,
  };
}

function failingAt(word: string) {
  return onEachQuery((text) => {
    if (text.includes(word)) throw new Error('broken');
  });
}
