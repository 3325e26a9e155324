// Backups of the real embedded database: taken while rows are written, restored, checked, damaged and interrupted.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Database } from '../../apps/platform/src/db/database.ts';
import { BackupStage, type StageOptions } from './backup.fixture.ts';
import { ask, quiet } from './embedded-database.fixture.ts';

/** Each restore copies and starts a whole cluster, which takes long on a busy disk. */
vi.setConfig({ testTimeout: 300_000 });

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

const flip = (path: string): void => {
  const bytes = readFileSync(path);
  // In the empty rest of a packed segment, a changed bit can mean the same content, so the bit is near the start.
  const at = Math.min(100, Math.floor(bytes.length / 2));
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
};

const lines = (output: { readonly stderr: readonly string[] }): string => output.stderr.join('\n');

describe('a damaged backup', () => {
  it('is named by verify and restore with the bad file, which can be a copied file, a key, or a segment of the archive', async () => {
    const stage = await open();
    const url = await stage.start();
    const name = await stage.create();
    for (const table of ['a', 'b', 'c']) {
      await ask(url, `create table ${table} as select 1 as n`);
      await stage.archive(url);
    }
    await stage.stop();
    const base = join(stage.backupDir, 'base', name);
    const segments = readdirSync(join(stage.backupDir, 'wal'))
      .filter((file) => /^[0-9A-F]{24}\.gz$/.test(file))
      .sort();
    const middle = join(stage.backupDir, 'wal', segments.at(-2) ?? '');
    await stage.succeed('verify');
    const target = stage.folder('restored');
    const restore = ['restore', '--from', stage.backupDir, '--to', target];
    const damages: readonly [path: string, damage: (path: string) => void, restores: boolean][] = [
      [join(base, 'cluster/global/pg_control'), flip, false],
      [join(base, 'keys/master-key'), flip, false],
      [join(base, 'cluster/PG_VERSION'), rmSync, false],
      [join(base, 'wal', readdirSync(join(base, 'wal'))[0] ?? ''), flip, false],
      [middle, flip, false],
      // Without a segment the restore stops before it, which is the latest time that the list shows.
      [middle, rmSync, true],
    ];
    for (const [path, damage, restores] of damages) {
      const before = readFileSync(path);
      damage(path);
      const verified = await stage.run('verify', name);
      expect([path, verified.code]).toEqual([path, 1]);
      expect(lines(verified)).toContain(path);
      const restored = await stage.run(...restore);
      if (!restores) expect(lines(restored)).toContain(path);
      expect([path, restored.code === 0]).toEqual([path, restores]);
      expect([path, existsSync(join(target, 'postgres'))]).toEqual([path, restores]);
      writeFileSync(path, before, { mode: 0o600 });
    }
    // Archiving was off meanwhile, so nothing was lost.
    rmSync(middle);
    writeFileSync(middle.replace(/gz$/, 'gap'), '');
    expect(await stage.succeed('verify', name)).toEqual([
      expect.stringContaining(`ok: ${name}`),
      expect.stringContaining('the log after this backup has a gap: restores of this backup end at 2'),
    ]);
    const partial = await stage.start(target);
    expect(await ask(partial, "select array[to_regclass('a'), to_regclass('c')]::text")).toBe('{a,NULL}');
  });
});

/** Waits until the clock has advanced, so that commits before and after have different times. */
const pause = async (): Promise<void> => {
  const from = Date.now();
  await until(() => Date.now() > from + 20);
};

it('a backup is refused with one line beside a server without backups, without a database, and of an external PostgreSQL', async () => {
  const stage = await open();
  await stage.start(stage.dataDir, 'minimal');
  const refused = async (text: string, ...args: string[]): Promise<void> => {
    const { code, stderr } = await stage.run(...args);
    expect([code, stderr]).toEqual([2, [expect.stringContaining(text)]]);
  };
  await refused('runs without `[backup] dir`', 'create');
  await refused('contains no embedded database', 'create', '--data-dir', stage.folder('other'));
  symlinkSync(stage.dataDir, stage.folder('link'));
  await refused('outside of `data_dir`', 'create', '--to', join(stage.folder('link'), 'backups'));
  await refused('is its disk mounted?', 'create', '--to', stage.folder('away/backups'));
  expect(readdirSync(stage.backupDir)).toEqual(['wal']);
  vi.stubEnv('TUNNEL_DATABASE__URL', 'postgres://localhost/tunnel');
  vi.stubEnv('TUNNEL_BACKUP__DIR', '');
  try {
    const restore = ['restore', '--from', stage.backupDir, '--to', stage.folder('restored')];
    for (const args of [['create'], ['list'], ['verify'], restore]) await refused('external PostgreSQL', ...args);
  } finally {
    vi.unstubAllEnvs();
  }
});

describe('a restore', () => {
  it('is refused before a byte is written: no backup, used folder, impossible time, other PostgreSQL, damaged manifest', async () => {
    const stage = await open({ wal: false, keys: false });
    const target = stage.folder('restored');
    const restore = (...more: string[]) => stage.run('restore', '--from', stage.backupDir, '--to', target, ...more);
    const refused = async (text: string, ...more: string[]): Promise<void> => {
      const result = await restore(...more);
      expect([lines(result), result.code]).toEqual([expect.stringContaining(text), 2]);
      expect(existsSync(target)).toBe(false);
    };
    await refused('contains no');
    await stage.start();
    const name = await stage.create();
    await stage.stop();
    const [listed] = JSON.parse((await stage.succeed('list', '--json')).join('')) as {
      wal_from: string;
      wal_to: string;
    }[];
    await refused(`Possible: ${listed?.wal_from} to ${listed?.wal_to}`, '--time', '2020-01-01T00:00:00Z');
    await refused(`Possible: ${listed?.wal_from} to ${listed?.wal_to}`, '--time', '2100-01-01T00:00:00Z');
    await refused('with its zone', '--time', '2026-01-01T00:00:00');
    expect(lines(await stage.run('restore', '--from', stage.backupDir, '--to', stage.dataDir))).toContain(
      'is not empty',
    );
    const manifest = join(stage.backupDir, 'base', name, 'backup_manifest.json');
    const text = readFileSync(manifest, 'utf8');
    writeFileSync(manifest, text.replace('"postgres": 18', '"postgres": 17'));
    await refused('PostgreSQL 17');
    writeFileSync(manifest, text.replace('"cluster/PG_VERSION"', '"../PG_VERSION"'));
    await refused('`files`');
    writeFileSync(manifest, text.slice(0, 500));
    await refused('not valid JSON');
    writeFileSync(manifest, text);
    const said = (await stage.succeed('restore', '--from', join(stage.backupDir, name), '--to', target)).join('\n');
    expect(said).toContain('put your copies of master-key, certificate-key, login-secret, admin-token');
    expect(existsSync(join(target, 'master-key'))).toBe(false);
  });

  it('can be repeated: the log of a restored server is a new timeline, and the times before and after stay restorable', async () => {
    const stage = await open();
    const url = await stage.start();
    await stage.create();
    await ask(url, 'create table first as select 1 as n');
    const good = new Date().toISOString();
    await pause();
    await ask(url, 'create table mistake as select 1 as n');
    await pause();
    const undone = new Date().toISOString();
    await pause();
    await ask(url, 'create table later as select 1 as n');
    await stage.archive(url);
    await stage.stop();
    const second = stage.folder('second');
    const tables =
      "select array[to_regclass('first'), to_regclass('mistake'), to_regclass('later'), to_regclass('repaired')]::text";
    await stage.succeed('restore', '--from', stage.backupDir, '--to', second, '--time', good);
    const onSecond = await stage.start(second);
    expect(await ask(onSecond, tables)).toBe('{first,NULL,NULL,NULL}');
    await ask(onSecond, 'create table repaired as select 1 as n');
    await stage.archive(onSecond, second);
    await stage.stop();
    expect(readdirSync(join(stage.backupDir, 'wal'))).toContain('00000002.history.gz');
    await stage.succeed('verify');
    const third = stage.folder('third');
    await stage.succeed('restore', '--from', stage.backupDir, '--to', third);
    const onThird = await stage.start(third);
    expect(await ask(onThird, tables)).toBe('{first,NULL,NULL,repaired}');
    await ask(onThird, 'create table again as select 1 as n');
    await stage.archive(onThird, third);
    await stage.stop();
    expect(readdirSync(join(stage.backupDir, 'wal'))).toContain('00000003.history.gz');
    const fourth = stage.folder('fourth');
    await stage.succeed('restore', '--from', stage.backupDir, '--to', fourth, '--time', undone);
    expect(await ask(await stage.start(fourth), tables)).toBe('{first,mistake,NULL,NULL}');
  });
});
