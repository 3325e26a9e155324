// Backups of the real embedded database that are damaged, restored without an archived log, and restored again and again.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BackupStage, type StageOptions, until, writeRows } from './backup.fixture.ts';
import { ask } from './embedded-database.fixture.ts';

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

it('a backup without an archived log restores on its own, with every row committed before its start', async () => {
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
  expect(existsSync(join(target, 'restore-unfinished'))).toBe(false);
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

it('a restore can be repeated: the log of a restored server is a new timeline, and the times before and after stay restorable', async () => {
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
