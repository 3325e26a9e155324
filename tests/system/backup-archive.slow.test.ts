// Scheduled backups and the archive of the log, with a real database, in the order in which a server starts and stops them.
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { type Secret, systemClock } from '@tunnel/runtime';
import { eventually, FastClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Backups } from '../../apps/server/src/backup/backups.ts';
import { parseSegment } from '../../apps/server/src/backup/wal-names.rules.ts';
import { EmbeddedPostgres } from '../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { SWITCHED_OFF, SWITCHED_ON } from '../../apps/server/src/embedded-postgres/log-mode.ts';
import { postgresFiles } from '../../apps/server/src/embedded-postgres/postgres-files.ts';
import { copyDatabase } from './database-template.fixture.ts';
import { ask, quiet } from './embedded-database.fixture.ts';
import { runServerCommand } from './server-command.fixture.ts';

const MB = 1024 * 1024;
const PATIENT = { timeoutMs: 60_000 };

let root: TemporaryDirectory;
const mounts: string[] = [];
const stops: (() => Promise<void>)[] = [];
beforeEach(async () => {
  root = await temporaryDirectory();
  await copyDatabase(at('data'));
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  for (const path of mounts.splice(0)) execFileSync('umount', [path]);
  await root.close();
});

const at = (...parts: string[]): string => join(root.path, ...parts);
const wal = (): string => at('backups', 'wal');
const spool = (): string => postgresFiles(at('data')).spool;
const backups = (): string[] => readdirSync(at('backups', 'base')).filter((name) => !name.startsWith('.'));

/** Numbers of the archived segments. */
const archived = (): number[] =>
  readdirSync(wal())
    .flatMap((name) => parseSegment(name.replace(/\.gz$/, ''))?.number ?? [])
    .sort((a, b) => a - b);

const isContiguous = (numbers: readonly number[]): boolean =>
  numbers.every((number, index) => index === 0 || number === (numbers[index - 1] ?? 0) + 1);

interface Running {
  readonly url: Secret;
  readonly figures: () => { lastSuccessSecs: number; failures: number; archiveFailures: number } | null;
  readonly backups: Backups;
  readonly stop: () => Promise<void>;
}

/** Starts the database with backups, on a clock that runs twenty times as fast for the pauses of the archiver and the schedule. */
const start = async (settings: object = {}, clock = new FastClock(20)): Promise<Running> => {
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
const writeSegment = async (url: Secret): Promise<void> => {
  await ask(url, 'create table if not exists filler (text text)');
  await ask(url, 'insert into filler select repeat(md5(n::text), 30) from generate_series(1, 12000) n');
  await ask(url, 'select pg_switch_wal()');
};

const mountable = ((): boolean => {
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

const mount = (path: string, megabytes: number): void => {
  mkdirSync(path, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', path]);
  mounts.push(path);
};

describe('the archive of the log', () => {
  it('has every segment from the first backup to the stop, also of a parent that was killed', async () => {
    const first = await start();
    expect(first.backups.startLines[0]).toBe('backup: none yet, the first one begins now');
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    await writeSegment(first.url);
    await eventually(() => expect(archived().length).toBeGreaterThanOrEqual(2), PATIENT);
    // The archive stands still as after a kill: PostgreSQL hands segments over, and nothing takes them.
    renameSync(wal(), `${wal()}.away`);
    await writeSegment(first.url);
    await first.stop();
    expect(readdirSync(spool()).length).toBeGreaterThanOrEqual(3);
    renameSync(`${wal()}.away`, wal());

    const second = await start({}, new FastClock(1));
    expect(second.backups.startLines[0]).toBe('backup: last 0 min ago');
    await ask(second.url, 'insert into filler values (md5($$last$$))');
    await second.stop();
    expect(readdirSync(spool()).sort()).toEqual(['begins-after', SWITCHED_ON]);
    expect(isContiguous(archived()), archived().join(' ')).toBe(true);
    expect(backups()).toHaveLength(1);
    const { code, stdout } = await runServerCommand([
      ...['backup', 'list', '--json', '--data-dir', at('data'), '--config', configFile()],
    ]);
    expect([code, (JSON.parse(stdout.join('')) as { ok: boolean }[]).map(({ ok }) => ok)]).toEqual([0, [true]]);
  });

  it('ends loudly at too much waiting log, resumes behind a gap, and a new backup follows the gap', async () => {
    const { url, figures } = await start({ wal_max_bytes: 40 * MB });
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    renameSync(wal(), `${wal()}.away`);
    await eventually(async () => {
      await writeSegment(url);
      expect(readdirSync(spool())).toContain(SWITCHED_OFF);
    }, PATIENT);
    await writeSegment(url);
    expect(figures()?.archiveFailures).toBeGreaterThan(0);
    const waiting = readdirSync(spool()).filter((name) => parseSegment(name) !== null).length;
    expect(waiting).toBeLessThanOrEqual(6);
    renameSync(`${wal()}.away`, wal());
    await eventually(() => expect(readdirSync(spool())).toContain(SWITCHED_ON), PATIENT);
    await writeSegment(url);
    await eventually(() => expect(isContiguous(archived())).toBe(false), PATIENT);
    await eventually(() => expect(backups()).toHaveLength(2), PATIENT);
  });

  it('is off and on again with the settings, and nothing in between is archived', async () => {
    const first = await start();
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    await first.stop();
    const before = archived();
    const off = await start({ dir: '' });
    expect(off.backups.startLines).toEqual(['backup: off, see docs/backup.md']);
    expect(await ask(off.url, 'show wal_level')).toBe('minimal');
    await ask(off.url, 'create table filler (text text)');
    await ask(off.url, 'insert into filler select repeat(md5(n::text), 30) from generate_series(1, 60000) n');
    await off.stop();
    expect(archived()).toEqual(before);
    const again = await start();
    await eventually(() => expect(backups()).toHaveLength(2), PATIENT);
    await ask(again.url, 'checkpoint').catch(() => {});
    await writeSegment(again.url);
    await again.stop();
    const after = archived().filter((number) => !before.includes(number));
    expect(isContiguous(after)).toBe(true);
    expect(after[0]).toBeGreaterThan((before.at(-1) ?? 0) + 1);
  });
});

describe.runIf(mountable)('a full disk', () => {
  it('of the backups: the database keeps working, and the archive catches up without a gap once there is room', async () => {
    mount(at('backups'), 80);
    const { url, figures } = await start();
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    const filler = at('backups', 'other-data');
    execFileSync('sh', ['-c', `cat /dev/zero > ${filler} 2>/dev/null || true`]);
    for (let round = 0; round < 3; round += 1) await writeSegment(url);
    await eventually(() => expect(figures()?.archiveFailures).toBeGreaterThan(1), PATIENT);
    expect(await ask(url, 'select count(*) > 0 from filler')).toBe(true);
    const failed = await runServerCommand(['backup', 'create', '--data-dir', at('data'), '--config', configFile()]);
    expect([failed.code, failed.stderr.join('\n')]).toEqual([1, expect.stringContaining('disk is full')]);
    expect(readdirSync(at('backups', 'base'))).toHaveLength(1);
    rmSync(filler);
    await eventually(
      () => expect(readdirSync(spool()).filter((name) => parseSegment(name) !== null)).toEqual([]),
      PATIENT,
    );
    expect(isContiguous(archived()), archived().join(' ')).toBe(true);
    expect(readdirSync(wal()).filter((name) => name.endsWith('.new'))).toEqual([]);
    await writeSegment(url);
    await eventually(() => expect(isContiguous(archived())).toBe(true));
  });

  it('of the spool: the database keeps working, archiving is switched off on the full disk, and resumes', async () => {
    const settings = { wal_max_bytes: 64 * MB };
    const first = await start(settings);
    await eventually(() => expect(readdirSync(spool())).toContain(SWITCHED_ON), PATIENT);
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    await first.stop();
    const { uid, gid } = statSync(spool());
    mount(spool(), 24);
    writeFileSync(join(spool(), SWITCHED_ON), '');
    for (const path of [spool(), join(spool(), SWITCHED_ON)]) chownSync(path, uid, gid);
    const { url } = await start(settings);
    renameSync(wal(), `${wal()}.away`);
    await eventually(
      async () => {
        await writeSegment(url);
        expect(readdirSync(spool())).toContain(SWITCHED_OFF);
      },
      { timeoutMs: 100_000 },
    );
    expect(await ask(url, 'select count(*) > 0 from filler')).toBe(true);
    renameSync(`${wal()}.away`, wal());
    await eventually(() => expect(readdirSync(spool())).toContain(SWITCHED_ON), { timeoutMs: 100_000 });
    const before = archived().length;
    await writeSegment(url);
    await eventually(() => expect(archived().length).toBeGreaterThan(before), PATIENT);
  });
});

const configFile = (): string => {
  const file = at('server.toml');
  writeFileSync(file, `data_dir = "${at('data')}"\n[backup]\ndir = "${at('backups')}"\n`);
  return file;
};
