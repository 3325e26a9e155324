import { join } from 'node:path';
import type { Logger } from '@tunnel/runtime';
import { FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Journal } from './journal/journal.ts';
import { JournalDelivery } from './journal-delivery.ts';

const error = vi.fn();
const logger = { error, info: vi.fn(), warn: vi.fn(), debug: vi.fn() } as unknown as Logger;

let root: TemporaryDirectory;
let journal: Journal;

beforeEach(async () => {
  error.mockClear();
  root = await temporaryDirectory();
  journal = new Journal({
    folder: join(root.path, 'edge-journal'),
    logger,
    newId: () => 'jrn_1',
    batch: { records: 2, bytes: 1 << 20 },
    tailBytes: 1 << 20,
    queueBytes: 1 << 20,
    sentBytes: 1 << 20,
  });
  await journal.start();
  // Three batches: records 1 and 2, 3 and 4, and 5.
  for (const tunnel of ['a', 'b', 'c', 'd', 'e']) {
    journal.append([{ kind: 'usage', tunnel_id: tunnel, requests: 1, bytes: 1, at: 1 }]);
  }
});
afterEach(async () => {
  await journal.close();
  await root.close();
});

/** Delivers the journal to a platform that has already stored the records up to number `stored`. Returns the first number of each batch. */
const deliverTo = async (stored: number): Promise<number[]> => {
  const sent: number[] = [];
  const sendRecords = ({ first, records }: { first: number; records: readonly unknown[] }): Promise<number> => {
    sent.push(first);
    return Promise.resolve(Math.max(stored, first + records.length - 1));
  };
  const link = { sendRecords };
  const delivery = new JournalDelivery({ clock: new FakeClock(), logger, journal, link, runId: 'run_1', everyMs: 1 });
  expect(await delivery.deliver()).toBe(true);
  return sent;
};

describe('records that the platform has stored, while a killed run lost the response', () => {
  it('are not sent again, and are not reported as records of another edge', async () => {
    expect(await deliverTo(4)).toEqual([1, 5]);
    expect(error).not.toHaveBeenCalled();
    expect(journal.size).toBe(0);
  });

  it('are all records of the journal', async () => {
    expect(await deliverTo(5)).toEqual([1]);
    expect(error).not.toHaveBeenCalled();
    expect(journal.size).toBe(0);
  });
});

describe('records with higher numbers than this edge has assigned', () => {
  it('are reported as records of another edge, and later records get higher numbers', async () => {
    expect(await deliverTo(6)).toEqual([1]);
    expect(error).toHaveBeenCalledOnce();
    expect(error.mock.lastCall?.[0]).toEqual({ journal_id: 'jrn_1', first: 1, last_record: 6 });
    journal.append([{ kind: 'usage', tunnel_id: 'f', requests: 1, bytes: 1, at: 1 }]);
    expect(await deliverTo(6)).toEqual([7]);
  });
});
