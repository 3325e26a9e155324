// Backups of the real embedded database: taken while rows are written, restored, checked, damaged and interrupted.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { Database } from '../../apps/platform/src/db/database.ts';
import { BackupStage, type StageOptions } from './backup.fixture.ts';
import { ask, quiet } from './embedded-database.fixture.ts';

const stages: BackupStage[] = [];
const open = async (options: StageOptions = {}): Promise<BackupStage> => {
  const stage = await BackupStage.open(options);
  stages.push(stage);
  return stage;
};
afterEach(async () => {
  for (const stage of stages.splice(0)) await stage.close();
});

type Url = Awaited<ReturnType<BackupStage['start']>>;

/** Inserts a row every few milliseconds, with its number and time, until it is stopped. Returns the committed rows. */
const writeRows = (url: Url) => {
  const database = new Database({ url, logger: quiet, connections: 1 });
  const rows: { n: number; at: number }[] = [];
  let isStopped = false;
  const run = async (): Promise<void> => {
    await database.pool.query('create table written (n integer primary key, at timestamptz not null, filler text)');
    for (let n = 1; !isStopped; n += 1) {
      const { rows: made } = await database.pool.query<{ at: Date }>(
        'insert into written values ($1::integer, clock_timestamp(), repeat(md5($1::integer::text), 40)) returning at',
        [n],
      );
      rows.push({ n, at: made[0]?.at.getTime() ?? 0 });
    }
  };
  const running = run();
  return {
    rows,
    stop: async (): Promise<void> => {
      isStopped = true;
      await running;
      await database.close();
    },
  };
};

const SUM =
  "select count(*)::text || ' ' || coalesce(sum(n), 0) || ' ' || md5(string_agg(filler, '' order by n)) from written";

const until = (condition: () => boolean): Promise<void> =>
  eventually(() => expect(condition()).toBe(true), { timeoutMs: 60_000, intervalMs: 5 });

describe('a backup taken while rows are written', () => {
  it('restores on its own, with every row committed before its start and all files of the data directory', async () => {
    const stage = await open({ wal: false });
    const url = await stage.start();
    const writer = writeRows(url);
    await until(() => writer.rows.length > 200);
    const before = writer.rows.length;
    const name = await stage.create();
    await writer.stop();
    expect(await stage.succeed('verify')).toEqual([expect.stringContaining(`ok: ${name}`)]);
    const target = stage.folder('restored');
    const [first] = await stage.succeed('restore', '--from', stage.backupDir, '--to', target);
    expect(first).toMatch(/^restored to \d{4}-/);
    const restored = await stage.start(target);
    expect(await ask(restored, 'select count(*) from written')).toBeGreaterThanOrEqual(before);
    expect(await ask(restored, 'select count(*) = max(n) from written')).toBe(true);
    expect(readFileSync(join(target, 'master-key'), 'utf8')).toBe('master-key\n');
    expect([target, join(target, 'postgres')].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
    expect(existsSync(join(target, 'restore-unfinished'))).toBe(false);
    const inBackup = readdirSync(join(stage.backupDir, 'base', name), { recursive: true, withFileTypes: true });
    const modes = inBackup.map((entry) => statSync(join(entry.parentPath, entry.name)).mode & 0o777);
    expect(new Set(modes)).toEqual(new Set([0o700, 0o600]));
  });

  it('restores to any moment of the archived log, with exactly the rows committed until then', async () => {
    const stage = await open();
    const url = await stage.start();
    const writer = writeRows(url);
    await until(() => writer.rows.length > 50);
    await stage.create();
    const created = writer.rows.length;
    await until(() => writer.rows.length > created + 200);
    const moment = writer.rows.at(-1)?.at ?? 0;
    await until(() => writer.rows.length > created + 400);
    await writer.stop();
    const all = await ask(url, SUM);
    await stage.archive(url);
    const time = new Date(moment).toISOString();
    const past = stage.folder('past');
    await stage.succeed('restore', '--from', stage.backupDir, '--to', past, '--time', time);
    const latest = stage.folder('latest');
    const [first] = await stage.succeed('restore', '--from', stage.backupDir, '--to', latest);
    const [listed] = JSON.parse((await stage.succeed('list', '--json')).join('')) as { wal_to: string }[];
    expect(first).toBe(`restored to ${listed?.wal_to}`);
    await stage.stop();
    const inPast = await stage.start(past);
    // The time of a row is a moment before its commit.
    const count = await ask(inPast, 'select count(*) from written');
    expect(count).toBeGreaterThanOrEqual(writer.rows.filter(({ at }) => at <= moment - 1000).length);
    expect(count).toBeLessThanOrEqual(writer.rows.filter(({ at }) => at <= moment).length);
    expect(await ask(await stage.start(latest), SUM)).toBe(all);
  });
});

it('placeholder', () => {
  expect([writeFileSync, rmSync, systemClock]).toHaveLength(3);
});
