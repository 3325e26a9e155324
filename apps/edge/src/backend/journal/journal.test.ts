import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import type { JournalRecord } from '@tunnel/contract';
import { GrowingFile, type Logger } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Journal } from './journal.ts';

let root: TemporaryDirectory;
let folder: string;
let ids: number;
const open: Journal[] = [];
const error = vi.fn();
const info = vi.fn();
const logger = { error, info, warn: vi.fn(), debug: vi.fn() } as unknown as Logger;

beforeEach(async () => {
  root = await temporaryDirectory();
  folder = join(root.path, 'edge-journal');
  ids = 0;
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const journal of open.splice(0)) await journal.close();
  error.mockClear();
  info.mockClear();
  await root.close();
});

const DAY = Date.UTC(2030, 0, 1);

const usage = (tunnel_id: string, bytes: number, at = DAY): JournalRecord => ({
  kind: 'usage',
  tunnel_id,
  requests: 1,
  bytes,
  at,
});
const closed = (tunnel_id: string): JournalRecord => ({ kind: 'closed', tunnel_id, at: DAY, abandoned: false });
const opened = (tunnel_id: string): JournalRecord => ({
  kind: 'opened',
  run_id: 'run_1',
  tunnel_id,
  session_id: 'ses_1',
  account_id: 'alice',
  key_id: 'key_1',
  name: 'web',
  protocol: 'http',
  label: 'web',
  at: DAY,
});

const startJournal = async (
  given: { tailBytes?: number; records?: number; queueBytes?: number; sentBytes?: number } = {},
): Promise<Journal> => {
  const journal = new Journal({
    folder,
    logger,
    newId: () => {
      ids += 1;
      return `jrn_${ids}`;
    },
    batch: { records: given.records ?? 1000, bytes: 1 << 20 },
    tailBytes: given.tailBytes ?? 1 << 20,
    queueBytes: given.queueBytes ?? 1 << 20,
    sentBytes: given.sentBytes ?? 1 << 20,
  });
  open.push(journal);
  await journal.start();
  return journal;
};

/** Acknowledges all pending batches without sending them, and returns them in order. */
const drain = async (journal: Journal) => {
  await journal.seal();
  const batches = [];
  for (let batch = journal.batch; batch !== null; batch = journal.batch) {
    batches.push(batch);
    journal.acknowledged(batch.journalId, batch.first + batch.records.length - 1);
  }
  return batches;
};

const onlyFile = (): string => {
  const names = readdirSync(folder).filter((name) => name.startsWith('journal-'));
  expect(names).toHaveLength(1);
  return join(folder, names[0] as string);
};

describe('a journal', () => {
  it('sums the usage of a tunnel per day, and keeps the order of other records', async () => {
    const journal = await startJournal();
    journal.append([opened('a'), usage('a', 1), usage('b', 2)]);
    journal.append([usage('a', 10, DAY + 5), usage('a', 100, DAY + 86_400_000), closed('a'), usage('a', 1000)]);
    expect(await drain(journal)).toEqual([
      {
        journalId: 'jrn_1',
        first: 1,
        records: [
          opened('a'),
          { ...usage('a', 1011, DAY + 5), requests: 3 },
          usage('b', 2),
          usage('a', 100, DAY + 86_400_000),
          closed('a'),
        ],
      },
    ]);
    expect(journal.size).toBe(0);
  });

  it('splits batches at their maximum size, and continues record numbers after a restart', async () => {
    const journal = await startJournal({ records: 2 });
    journal.append([usage('a', 1), usage('b', 2), usage('c', 3)]);
    const batches = await drain(journal);
    expect(batches.map(({ first, records }) => [first, records.length])).toEqual([
      [1, 2],
      [3, 1],
    ]);
    await journal.close();
    const next = await startJournal();
    next.append([usage('d', 4)]);
    expect(await drain(next)).toEqual([{ journalId: 'jrn_1', first: 4, records: [usage('d', 4)] }]);
  });

  it('keeps the numbers and content of records that may have been sent, and adds nothing to them', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1)]);
    await journal.seal();
    const sent = journal.batch;
    journal.append([usage('a', 10)]);
    await journal.close();
    const next = await startJournal();
    expect(next.batch).toEqual(sent);
    next.append([usage('a', 100)]);
    const batches = await drain(next);
    expect(batches.flatMap(({ records }) => records.map((record) => 'bytes' in record && record.bytes))).toEqual([
      1, 10, 100,
    ]);
    expect(batches.map(({ first }) => first)).toEqual([1, 2, 3]);
  });

  it('drops acknowledged records, even if they are only part of a batch', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1), usage('b', 2), usage('c', 3)]);
    await journal.seal();
    journal.acknowledged('jrn_1', 2);
    expect(journal.batch).toEqual({ journalId: 'jrn_1', first: 3, records: [usage('c', 3)] });
    await journal.close();
    expect((await startJournal()).batch).toEqual({ journalId: 'jrn_1', first: 3, records: [usage('c', 3)] });
  });

  it('continues after numbers that another edge has used, also after a restart', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1)]);
    await journal.seal();
    journal.acknowledged('jrn_1', 7);
    journal.append([usage('b', 2)]);
    await journal.close();
    const next = await startJournal();
    expect(next.lastNumber('jrn_1')).toBe(8);
    expect(await drain(next)).toEqual([{ journalId: 'jrn_1', first: 8, records: [usage('b', 2)] }]);
  });

  it('drops a torn last line and keeps earlier records, without logging an error', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1), usage('b', 2)]);
    await journal.close();
    appendFileSync(onlyFile(), '{"kind":"usage","tunnel_id":"c","req');
    const [batch] = await drain(await startJournal());
    expect(batch?.records).toEqual([usage('a', 1), usage('b', 2)]);
    expect(error).not.toHaveBeenCalled();
  });

  it('logs an error for an unreadable line in the middle, and keeps the other records', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1)]);
    await journal.close();
    appendFileSync(onlyFile(), `\u0000\u0000\n${JSON.stringify(usage('b', 2))}\n`);
    const [batch] = await drain(await startJournal());
    expect(batch?.records).toEqual([usage('a', 1), usage('b', 2)]);
    expect(error).toHaveBeenCalledOnce();
  });

  it('moves a file with other content aside and starts a new journal', async () => {
    const journal = await startJournal();
    await journal.close();
    writeFileSync(onlyFile(), 'what is this?\n');
    const next = await startJournal();
    next.append([usage('a', 1)]);
    expect(await drain(next)).toMatchObject([{ journalId: 'jrn_2', first: 1 }]);
    expect(readdirSync(folder).filter((name) => name.endsWith('.unreadable'))).toHaveLength(1);
  });

  it.each([
    ['a folder', (path: string) => mkdirSync(path)],
    ['a link to nothing', (path: string) => symlinkSync(`${path}.none`, path)],
    ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
    [
      'more than can be read',
      (path: string) => {
        closeSync(openSync(path, 'w'));
        truncateSync(path, 2 ** 30);
      },
    ],
  ])('moves %s in place of the file aside, and loses no record of later runs', async (_what, put) => {
    const first = await startJournal();
    await first.close();
    const path = onlyFile();
    rmSync(path);
    put(path);
    const second = await startJournal();
    second.append([usage('a', 1)]);
    await second.close();
    const third = await startJournal();
    third.append([usage('b', 2)]);
    await third.close();
    const records = (await drain(await startJournal())).flatMap((batch) => batch.records);
    expect(records).toEqual([usage('a', 1), usage('b', 2)]);
    expect(error).toHaveBeenCalledOnce();
    expect(readdirSync(folder)).toContain(`${basename(path)}.unreadable`);
  });

  it('moves a second unreadable file aside without overwriting the first', async () => {
    for (let run = 0; run < 2; run += 1) {
      await (await startJournal()).close();
      const [name] = readdirSync(folder).filter((each) => each.endsWith('.jsonl'));
      writeFileSync(join(folder, name as string), 'what is this?\n');
    }
    await startJournal();
    expect(readdirSync(folder).filter((name) => name.endsWith('.unreadable'))).toHaveLength(2);
  });

  it('closes the tunnels left open by a killed run', async () => {
    const journal = await startJournal();
    journal.append([opened('a'), opened('b'), closed('b'), usage('a', 5, DAY + 500)]);
    await journal.close();
    const batches = await drain(await startJournal());
    const records = batches.flatMap((batch) => batch.records);
    expect(records.at(-1)).toEqual({ kind: 'closed', tunnel_id: 'a', at: DAY + 500, abandoned: false });
    expect(records.filter(({ kind }) => kind === 'closed')).toHaveLength(2);
  });

  it('finds stored records again, also after a restart, for a platform that has lost them', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1), usage('b', 2), usage('c', 3)]);
    const [sent] = await drain(journal);
    journal.append([usage('d', 4)]);
    await journal.close();
    const next = await startJournal();
    await next.seal();
    expect(await next.sendAgain('jrn_1', 2, 3)).toBe(0);
    expect(await drain(next)).toEqual([
      { journalId: 'jrn_1', first: 2, records: sent?.records.slice(1) },
      { journalId: 'jrn_1', first: 4, records: [usage('d', 4)] },
    ]);
  });

  it('tells how many stored records are no longer kept, and sends the rest under a new id', async () => {
    const journal = await startJournal({ sentBytes: 600 });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      journal.append([usage(name, 1)]);
      await drain(journal);
    }
    const missing = await journal.sendAgain('jrn_1', 1, 8);
    expect(missing).toBeGreaterThan(0);
    expect(missing).toBeLessThan(8);
    await journal.renumber('jrn_1');
    const records = (await drain(journal)).flatMap((batch) => (batch.journalId === 'jrn_2' ? batch.records : []));
    expect(records.map((record) => record.tunnel_id)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].slice(missing));
  });

  it('restored from a backup keeps the numbers of its records, and numbers later records under a new id', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1)]);
    await journal.close();
    writeFileSync(join(folder, 'restored'), '');
    const next = await startJournal();
    next.append([usage('a', 2)]);
    const batches = await drain(next);
    expect(batches).toEqual([
      { journalId: 'jrn_1', first: 1, records: [usage('a', 1)] },
      { journalId: expect.not.stringMatching(/^jrn_1$/), first: 1, records: [usage('a', 2)] },
    ]);
    expect(readdirSync(folder)).not.toContain('restored');
  });

  it('continues under a new id if the platform has lost the previous records', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1)]);
    await drain(journal);
    journal.append([usage('a', 2), usage('b', 3)]);
    await journal.seal();
    expect(journal.batch).toMatchObject({ journalId: 'jrn_1', first: 2 });
    await journal.renumber('jrn_1');
    expect(journal.batch).toMatchObject({ journalId: 'jrn_2', first: 1, records: [{ bytes: 2 }, { bytes: 3 }] });
    journal.append([usage('c', 4)]);
    await journal.close();
    const again = await drain(await startJournal());
    expect(again.map(({ journalId, first }) => [journalId, first])).toEqual([
      ['jrn_2', 1],
      ['jrn_2', 3],
    ]);
  });
});

describe('the file of a journal', () => {
  it('is readable only by the edge’s user', async () => {
    await startJournal();
    expect(statSync(onlyFile()).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it('stays small during a long outage of the platform, without losing usage', async () => {
    const journal = await startJournal({ tailBytes: 20_000 });
    let bytes = 0;
    for (let round = 0; round < 60; round += 1) {
      for (let n = 0; n < 50; n += 1) journal.append([usage(`tun_${n}`, round)]);
      bytes += 50 * round;
      await new Promise(setImmediate);
    }
    await eventually(() => expect(statSync(onlyFile()).size).toBeLessThan(60_000));
    await journal.close();
    const batches = await drain(await startJournal());
    const records = batches.flatMap((batch) => batch.records);
    expect(records).toHaveLength(50);
    expect(records.reduce((sum, record) => sum + ('bytes' in record ? record.bytes : 0), 0)).toBe(bytes);
  });
});

describe('a journal on a failing disk', () => {
  const total = (batches: Awaited<ReturnType<typeof drain>>): number =>
    batches.flatMap(({ records }) => records).reduce((sum, each) => sum + ('bytes' in each ? each.bytes : 0), 0);

  it('works in memory if the disk fails from the start, and logs one error', async () => {
    writeFileSync(folder, 'a file where the folder should be');
    const journal = await startJournal();
    journal.append([usage('a', 1)]);
    await journal.seal();
    journal.append([usage('a', 2)]);
    expect(total(await drain(journal))).toBe(3);
    expect(error).toHaveBeenCalledOnce();
  });

  it('keeps the numbers of records on disk, and sends later records under another id', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1)]);
    vi.spyOn(GrowingFile.prototype, 'append').mockImplementation(() => {
      throw new Error('ENOSPC: no space left on device');
    });
    journal.append([usage('a', 20)]);
    journal.append([usage('a', 300)]);
    const prepare = vi.spyOn(GrowingFile, 'prepare').mockRejectedValue(new Error('ENOSPC'));
    const sent = await drain(journal);
    expect(sent).toEqual([
      { journalId: 'jrn_1', first: 1, records: [usage('a', 1)] },
      { journalId: 'jrn_2', first: 1, records: [{ ...usage('a', 320), requests: 2 }] },
    ]);
    expect(error).toHaveBeenCalledOnce();
    prepare.mockRestore();
    vi.restoreAllMocks();
    // After a kill, the next run finds the file unchanged and sends the records under the numbers known to the platform.
    expect(await drain(await startJournal())).toEqual([sent[0]]);
  });

  it.each(['regain', 'close'] as const)(
    'saves the records in memory after %s once the disk works again',
    async (how) => {
      const journal = await startJournal();
      journal.append([usage('a', 1)]);
      await journal.written();
      const append = vi.spyOn(GrowingFile.prototype, 'append').mockRejectedValue(new Error('ENOSPC'));
      journal.append([usage('a', 20)]);
      await journal.written();
      append.mockRestore();
      journal.append([usage('b', 300)]);
      await journal[how]();
      const records = (await drain(await startJournal())).flatMap((batch) => batch.records);
      expect(records).toEqual([usage('a', 1), usage('a', 20), usage('b', 300)]);
      expect(info).toHaveBeenCalledOnce();
    },
  );

  it('cuts the file back to numbered records if numbering fails', async () => {
    const journal = await startJournal();
    journal.append([usage('a', 1)]);
    vi.spyOn(GrowingFile, 'prepare').mockImplementation(async () => {
      // A record arrives while earlier records are being numbered.
      journal.append([usage('a', 20)]);
      throw new Error('ENOSPC');
    });
    const sent = await drain(journal);
    expect(sent).toEqual([{ journalId: 'jrn_1', first: 1, records: [usage('a', 1)] }]);
    expect(readFileSync(onlyFile(), 'utf8')).not.toContain('"bytes":20');
    vi.restoreAllMocks();
    expect(await drain(journal)).toEqual([{ journalId: 'jrn_2', first: 1, records: [usage('a', 20)] }]);
    expect(info).toHaveBeenCalledOnce();
  });

  it('writes to the disk again once the disk works', async () => {
    const journal = await startJournal();
    const append = vi.spyOn(GrowingFile.prototype, 'append').mockImplementation(() => {
      throw new Error('EIO');
    });
    journal.append([usage('a', 1)]);
    append.mockRestore();
    await journal.seal();
    journal.append([usage('b', 2)]);
    await journal.close();
    expect(total(await drain(await startJournal()))).toBe(3);
    expect(info).toHaveBeenCalledOnce();
  });

  it('starts even if its folder cannot be listed', async () => {
    const journal = await startJournal();
    await journal.close();
    chmodSync(folder, 0o000);
    try {
      const next = await startJournal();
      next.append([usage('a', 1)]);
      expect(next.size).toBe(1);
    } finally {
      chmodSync(folder, 0o700);
    }
  });
});
