// A slow disk: no caller waits for a write, the order of records stays, and a full queue is reported.
import { readdirSync, readFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { JournalRecord } from '@tunnel/contract';
import type { Logger } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Journal } from './journal.ts';

let root: TemporaryDirectory;
const error = vi.fn();
const logger = { error, info: vi.fn(), warn: vi.fn(), debug: vi.fn() } as unknown as Logger;

beforeEach(async () => {
  root = await temporaryDirectory();
});
afterEach(async () => {
  vi.restoreAllMocks();
  error.mockClear();
  await root.close();
});

const usage = (tunnel: number, bytes: number): JournalRecord => ({
  kind: 'usage',
  tunnel_id: `tun_${tunnel}`,
  requests: 1,
  bytes,
  at: 1,
});
const closed = (tunnel: number): JournalRecord => ({
  kind: 'closed',
  tunnel_id: `tun_${tunnel}`,
  at: 1,
  abandoned: false,
});

const startJournal = async (queueBytes = 1 << 20): Promise<Journal> => {
  let ids = 0;
  const newId = () => `jrn_${(ids += 1)}`;
  const batch = { records: 1000, bytes: 1 << 20 };
  const journal = new Journal({
    folder: root.path,
    logger,
    newId,
    batch,
    tailBytes: 1 << 20,
    queueBytes,
    sentBytes: 1 << 20,
  });
  await journal.start();
  return journal;
};

interface SlowDisk {
  readonly writes: number;
  /** Highest number of concurrent writes so far. */
  readonly atOnce: number;
  /** Completes the oldest pending write. */
  letOne(): void;
  /** Completes all pending writes, and lets later writes pass without delay. */
  letAll(): void;
}

/** Holds back every real write until the test releases the write. */
const slowDown = async (): Promise<SlowDisk> => {
  const handle = await open('/dev/null');
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const real = prototype.writeFile;
  const held: (() => void)[] = [];
  let isFast = false;
  let underWay = 0;
  const disk = {
    writes: 0,
    atOnce: 0,
    letOne: () => held.shift()?.(),
    letAll: () => {
      isFast = true;
      for (const letGo of held.splice(0)) letGo();
    },
  };
  vi.spyOn(prototype, 'writeFile').mockImplementation(async function (this: FileHandle, ...args) {
    disk.writes += 1;
    underWay += 1;
    disk.atOnce = Math.max(disk.atOnce, underWay);
    if (!isFast) await new Promise<void>((resolve) => held.push(resolve));
    await real.apply(this, args);
    underWay -= 1;
  });
  return disk;
};

const linesOnDisk = (): JournalRecord[] =>
  readdirSync(root.path)
    .flatMap((name) => readFileSync(join(root.path, name), 'utf8').trim().split('\n'))
    .map((line) => JSON.parse(line) as JournalRecord)
    .filter(({ kind }) => kind === 'usage' || kind === 'closed');

it('a slow write delays no append: the next write takes all records that arrived meanwhile, in order', async () => {
  const journal = await startJournal();
  const disk = await slowDown();
  for (let round = 0; round < 20; round += 1) {
    for (let n = 0; n < 100; n += 1) journal.append([usage(n, round)]);
    await nextTurn();
  }
  journal.append([closed(0)]);
  expect(disk.writes).toBe(1);
  disk.letAll();
  await journal.written();
  expect(disk.atOnce).toBe(1);
  expect(disk.writes).toBe(2);
  const lines = linesOnDisk();
  expect(lines.at(-1)).toEqual(closed(0));
  expect(lines.reduce((sum, each) => sum + ('bytes' in each ? each.bytes : 0), 0)).toBe(100 * 190);
  await journal.close();
});

it('a full write queue is reported and counted once, and no record is dropped', async () => {
  const journal = await startJournal(5000);
  const disk = await slowDown();
  for (let n = 0; n < 1000; n += 1) journal.append([usage(n, 1)]);
  for (let n = 0; n < 1000; n += 1) journal.append([usage(n, 1)]);
  expect(journal.waiting).toMatchObject({ isFull: true, timesFull: 1 });
  expect(error).toHaveBeenCalledOnce();
  disk.letAll();
  await journal.written();
  await eventually(() => expect(journal.waiting).toEqual({ bytes: 0, isFull: false, timesFull: 1 }));
  expect(linesOnDisk().reduce((sum, each) => sum + ('bytes' in each ? each.bytes : 0), 0)).toBe(2000);
  await journal.close();
});

it('records that arrive while a slow disk numbers earlier records are neither lost nor sent twice', async () => {
  const journal = await startJournal();
  const disk = await slowDown();
  journal.append([usage(1, 1)]);
  const sealing = journal.seal();
  const late = Array.from({ length: 30 }, (_, n) => usage(n + 100, 1));
  // Some records arrive during each write of the numbering.
  for (const [n, record] of late.entries()) {
    if (n % 10 === 9) {
      const before = disk.writes;
      disk.letOne();
      await eventually(() => expect(disk.writes).toBeGreaterThan(before));
    }
    journal.append([record]);
    await nextTurn();
  }
  disk.letAll();
  await sealing;
  expect(journal.batch?.records[0]).toEqual(usage(1, 1));
  expect(journal.batch?.records.length).toBeLessThan(late.length);
  await journal.close();
  vi.restoreAllMocks();
  const next = await startJournal();
  await next.seal();
  const found: string[] = [];
  for (let batch = next.batch; batch !== null; batch = next.batch) {
    found.push(...batch.records.map(({ tunnel_id }) => tunnel_id));
    next.acknowledged(batch.journalId, batch.first + batch.records.length - 1);
  }
  expect(found).toEqual(['tun_1', ...late.map(({ tunnel_id }) => tunnel_id)]);
  await next.close();
});
