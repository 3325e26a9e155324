// Backups of the real embedded database: taken while rows are written, restored to a moment, and refused. Damaged backups and repeated
// restores are in backup.long.test.ts.
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
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

const SUM =
  "select count(*)::text || ' ' || coalesce(sum(n), 0) || ' ' || md5(string_agg(filler, '' order by n)) from written";

describe('a backup taken while rows are written', () => {
  it('restores to any moment of the archived log, with exactly the rows committed until then', async () => {
    const stage = await open();
    const url = await stage.start();
    const writer = writeRows(url);
    await until(() => writer.rows.length > 50);
    const name = await stage.create();
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
    expect(readFileSync(join(latest, 'master-key'), 'utf8')).toBe('master-key\n');
    expect([latest, join(latest, 'postgres')].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
    const inBackup = readdirSync(join(stage.backupDir, 'base', name), { recursive: true, withFileTypes: true });
    const modes = inBackup.map((entry) => statSync(join(entry.parentPath, entry.name)).mode & 0o777);
    expect(new Set(modes)).toEqual(new Set([0o700, 0o600]));
  });
});

const lines = (output: { readonly stderr: readonly string[] }): string => output.stderr.join('\n');

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
});
