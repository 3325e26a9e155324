// A database with scheduled backups and an archive of its log, in the order in which a server starts and stops them.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { type Secret, systemClock } from '@tunnel/runtime';
import { FastClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { Backups } from '../../apps/server/src/backup/backups.ts';
import { parseSegment } from '../../apps/server/src/backup/wal-names.rules.ts';
import { EmbeddedPostgres } from '../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { postgresFiles } from '../../apps/server/src/embedded-postgres/postgres-files.ts';
import { copyDatabase } from './database-template.fixture.ts';
import { ask, quiet } from './embedded-database.fixture.ts';

export const MB = 1024 * 1024;
export const PATIENT = { timeoutMs: 60_000 };

let root: TemporaryDirectory;
const mounts: string[] = [];
const stops: (() => Promise<void>)[] = [];

/** Makes the data directory of a test. */
export const openArchive = async (): Promise<void> => {
  root = await temporaryDirectory();
  await copyDatabase(at('data'));
};

/** Stops what the test has started, and removes its folders. */
export const closeArchive = async (): Promise<void> => {
  for (const stop of stops.splice(0).reverse()) await stop();
  // A backup that a failed test did not wait for can still have files open. --lazy prevents that the mount outlives the test run.
  for (const path of mounts.splice(0)) execFileSync('umount', ['--lazy', path]);
  await root.close();
};

export const at = (...parts: string[]): string => join(root.path, ...parts);
export const wal = (): string => at('backups', 'wal');
export const spool = (): string => postgresFiles(at('data')).spool;
export const backups = (): string[] => readdirSync(at('backups', 'base')).filter((name) => !name.startsWith('.'));

/** Numbers of the archived segments. */
export const archived = (): number[] =>
  readdirSync(wal())
    .flatMap((name) => parseSegment(name.replace(/\.gz$/, ''))?.number ?? [])
    .sort((a, b) => a - b);

export const isContiguous = (numbers: readonly number[]): boolean =>
  numbers.every((number, index) => index === 0 || number === (numbers[index - 1] ?? 0) + 1);

interface Running {
  readonly url: Secret;
  readonly figures: () => { lastSuccessSecs: number; failures: number; archiveFailures: number } | null;
  readonly backups: Backups;
  readonly stop: () => Promise<void>;
}

/** Starts the database with backups, on a clock that runs twenty times as fast for the pauses of the archiver and the schedule. */
export const start = async (settings: object = {}, clock = new FastClock(20)): Promise<Running> => {
  const overrides = { data_dir: at('data'), backup: { dir: at('backups'), ...settings } };
  const config = loadServerConfig({ env: {}, overrides });
  let figures: ReturnType<Running['figures']> = null;
  const made = new Backups({
    ...{ settings: config.backup, dataDir: at('data'), version: '1.0.0', clock, logger: quiet },
    onFigures: (now) => {
      figures = now;
    },
  });
  const postgres = new EmbeddedPostgres({ dataDir: at('data'), logger: quiet, clock: systemClock, log: made.logMode });
  const { url } = await postgres.start();
  await made.start(url);
  await made.startSchedule();
  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    await made.stopSchedule();
    await postgres.stop();
    await made.stopArchive();
  };
  stops.push(stop);
  return { url, figures: () => figures, backups: made, stop };
};

/** Writes about a segment of log, and ends the segment. */
export const writeSegment = async (url: Secret): Promise<void> => {
  await ask(url, 'create table if not exists filler (text text)');
  await ask(url, 'insert into filler select repeat(md5(n::text), 30) from generate_series(1, 12000) n');
  await ask(url, 'select pg_switch_wal()');
};

export const mountable = ((): boolean => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  const probe = join('/tmp', `tunnel-mount-${process.pid}`);
  mkdirSync(probe);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', probe], { stdio: 'ignore' });
    execFileSync('umount', [probe]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(probe, { recursive: true });
  }
})();
if (!mountable) process.stderr.write('skipped: full disks of backups need root and the permission to mount\n');

export const mount = (path: string, megabytes: number): void => {
  mkdirSync(path, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', path]);
  mounts.push(path);
};

export const configFile = (): string => {
  const file = at('server.toml');
  writeFileSync(file, `data_dir = "${at('data')}"\n[backup]\ndir = "${at('backups')}"\n`);
  return file;
};
