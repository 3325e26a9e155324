// Random usage, deliveries, disk failures, lost responses and kills: each byte is stored exactly once.
import { join } from 'node:path';
import { GrowingFile, type Logger } from '@tunnel/runtime';
import { temporaryDirectory } from '@tunnel/testkit';
import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import { Journal } from './journal.ts';

const quiet = { error() {}, info() {}, warn() {}, debug() {} } as unknown as Logger;

afterEach(() => vi.restoreAllMocks());

/** Stands in for the platform: stores each record number of a journal once. */
class Store {
  #last = new Map<string, number>();
  bytes = 0;
  #backup: { readonly last: Map<string, number>; readonly bytes: number } = { last: new Map(), bytes: 0 };

  backUp(): void {
    this.#backup = { last: new Map(this.#last), bytes: this.bytes };
  }

  restore(): void {
    this.#last = new Map(this.#backup.last);
    this.bytes = this.#backup.bytes;
  }

  /** Stores a batch, unless it leaves a gap. Returns the number of the last stored record of the journal. */
  take({ journalId, first, records }: NonNullable<Journal['batch']>): number {
    const last = this.#last.get(journalId) ?? 0;
    if (first > last + 1) return last;
    for (const record of records.slice(last + 1 - first)) if (record.kind === 'usage') this.bytes += record.bytes;
    const now = Math.max(last, first + records.length - 1);
    this.#last.set(journalId, now);
    return now;
  }
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('append' as const), tunnel: fc.nat({ max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deliver' as const), isAnswerLost: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('break' as const), appends: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('heal' as const, 'turn' as const, 'turn' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const) }) },
);

const healthy = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('append' as const), tunnel: fc.nat({ max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('deliver' as const), isAnswerLost: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('kill' as const, 'turn' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('back up' as const, 'restore' as const) }) },
);

const play = async (steps: readonly unknown[]): Promise<void> => {
  const folder = await temporaryDirectory();
  const store = new Store();
  let ids = 0;
  let appended = 0;
  const newId = (): string => `jrn_${(ids += 1)}`;
  const batch = { records: 2, bytes: 1 << 20 };
  const options = {
    folder: join(folder.path, 'journal'),
    logger: quiet,
    newId,
    batch,
    tailBytes: 400,
    queueBytes: 300,
    sentBytes: 1 << 20,
  };
  let journal = new Journal(options);
  await journal.start();
  const deliver = async (isAnswerLost: boolean): Promise<void> => {
    await journal.seal();
    for (let next = journal.batch; next !== null; next = journal.batch) {
      const last = store.take(next);
      if (isAnswerLost) return;
      if (last < next.first - 1) {
        expect(await journal.sendAgain(next.journalId, last + 1, next.first - 1)).toBe(0);
        continue;
      }
      journal.acknowledged(next.journalId, last);
    }
  };
  for (const each of steps as readonly { do: string; tunnel?: number; isAnswerLost?: boolean; appends?: boolean }[]) {
    if (each.do === 'append') {
      appended += 1;
      journal.append([{ kind: 'usage', tunnel_id: `tun_${each.tunnel}`, requests: 1, bytes: 1, at: 1 }]);
    } else if (each.do === 'back up') store.backUp();
    else if (each.do === 'restore') store.restore();
    else if (each.do === 'deliver') await deliver(each.isAnswerLost === true);
    else if (each.do === 'turn') await new Promise(setImmediate);
    else if (each.do === 'heal') vi.restoreAllMocks();
    else if (each.do === 'break') {
      if (each.appends === true) vi.spyOn(GrowingFile.prototype, 'append').mockRejectedValue(new Error('EIO'));
      else vi.spyOn(GrowingFile, 'prepare').mockRejectedValue(new Error('ENOSPC'));
    } else {
      // Records kept only in memory are lost with the process. The disk therefore works again and has all records before the kill.
      vi.restoreAllMocks();
      await journal.seal();
      await journal.close();
      journal = new Journal(options);
      await journal.start();
    }
  }
  vi.restoreAllMocks();
  // A platform that was restored misses earlier records when the next record arrives.
  appended += 1;
  journal.append([{ kind: 'usage', tunnel_id: 'tun_last', requests: 1, bytes: 1, at: 1 }]);
  await deliver(false);
  expect(store.bytes).toBe(appended);
  expect(journal.size).toBe(0);
  await journal.close();
  const next = new Journal(options);
  await next.start();
  await next.seal();
  for (let left = next.batch; left !== null; left = next.batch) {
    next.acknowledged(left.journalId, store.take(left));
  }
  // Records delivered earlier are not delivered again under another number.
  expect(store.bytes).toBe(appended);
  await next.close();
  await folder.close();
};

it('each byte of usage is stored exactly once despite failing disks, lost responses and kills', async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), play), { numRuns: 50 });
}, 120_000);

it('each byte of usage is stored exactly once by a platform that is restored from backups', async () => {
  await fc.assert(fc.asyncProperty(fc.array(healthy, { maxLength: 60, size: 'max' }), play), { numRuns: 50 });
}, 120_000);
