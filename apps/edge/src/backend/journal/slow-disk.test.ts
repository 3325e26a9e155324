// A disk that takes its time: nobody waits for it, the order stays, and what is too much is said.
import { readdirSync, readFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { JournalRecord } from '@tunnel/contract';
import type { Logger } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Journal } from './journal.ts';

const WRITE_MS = 500;

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
  ...{ kind: 'usage', tunnel_id: `tun_${tunnel}`, requests: 1, bytes, at: 1 },
});
const closed = (tunnel: number): JournalRecord => ({
  ...{ kind: 'closed', tunnel_id: `tun_${tunnel}`, at: 1, abandoned: false },
});

const startJournal = async (queueBytes = 1 << 20): Promise<Journal> => {
  let ids = 0;
  const newId = () => `jrn_${(ids += 1)}`;
  const batch = { records: 1000, bytes: 1 << 20 };
  const journal = new Journal({ folder: root.path, logger, newId, batch, tailBytes: 1 << 20, queueBytes });
  await journal.start();
  return journal;
};

/** Real writes, each half a second late; how many are under way at once, at most. */
const slowDown = async (): Promise<{ readonly writes: () => number; readonly atOnce: () => number }> => {
  const handle = await open('/dev/null');
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const real = prototype.writeFile;
  let [writes, underWay, atOnce] = [0, 0, 0];
  vi.spyOn(prototype, 'writeFile').mockImplementation(async function (this: FileHandle, ...args) {
    writes += 1;
    underWay += 1;
    atOnce = Math.max(atOnce, underWay);
    await pause(WRITE_MS);
    await real.apply(this, args);
    underWay -= 1;
  });
  return { writes: () => writes, atOnce: () => atOnce };
};

const linesOnDisk = (): JournalRecord[] =>
  readdirSync(root.path)
    .flatMap((name) => readFileSync(join(root.path, name), 'utf8').trim().split('\n'))
    .map((line) => JSON.parse(line) as JournalRecord)
    .filter(({ kind }) => kind === 'usage' || kind === 'closed');

it('a write of half a second holds up nothing: one is under way, the next one takes all that came meanwhile, in order', async () => {
  const journal = await startJournal();
  const disk = await slowDown();
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  for (let round = 0; round < 20; round += 1) {
    for (let n = 0; n < 100; n += 1) journal.append([usage(n, round)]);
    await pause(10);
  }
  journal.append([closed(0)]);
  await journal.written();
  delay.disable();
  expect(delay.max / 1e6).toBeLessThan(50);
  expect(disk.atOnce()).toBe(1);
  expect(disk.writes()).toBeLessThanOrEqual(3);
  const lines = linesOnDisk();
  expect(lines.at(-1)).toEqual(closed(0));
  expect(lines.reduce((sum, each) => sum + ('bytes' in each ? each.bytes : 0), 0)).toBe(100 * 190);
  await journal.close();
});

it('over its bound the queue is full, which is said and counted once, and nothing is dropped', async () => {
  const journal = await startJournal(5000);
  await slowDown();
  for (let n = 0; n < 1000; n += 1) journal.append([usage(n, 1)]);
  for (let n = 0; n < 1000; n += 1) journal.append([usage(n, 1)]);
  expect(journal.waiting).toMatchObject({ isFull: true, timesFull: 1 });
  expect(error).toHaveBeenCalledOnce();
  await journal.written();
  await eventually(() => expect(journal.waiting).toEqual({ bytes: 0, isFull: false, timesFull: 1 }));
  expect(linesOnDisk().reduce((sum, each) => sum + ('bytes' in each ? each.bytes : 0), 0)).toBe(2000);
  await journal.close();
});

it('what comes while numbers are given on a slow disk is neither lost nor told twice', async () => {
  const journal = await startJournal();
  await slowDown();
  journal.append([usage(1, 1)]);
  const sealing = journal.seal();
  const late = Array.from({ length: 30 }, (_, n) => usage(n + 100, 1));
  for (const record of late) {
    await pause(40);
    journal.append([record]);
  }
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
