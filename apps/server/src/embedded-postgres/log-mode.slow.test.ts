// Modes of the log, on real databases: what the role may do, and what happens to finished segments.
import { existsSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger, type Secret, systemClock } from '@tunnel/runtime';
import { eventually, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectTo } from '../backup/connect.ts';
import { parseWalName } from '../backup/wal-names.rules.ts';
import { EmbeddedPostgres } from './embedded-postgres.ts';
import { type LogMode, lastLogMode, SWITCHED_OFF, SWITCHED_ON } from './log-mode.ts';
import { postgresFiles } from './postgres-files.ts';

const logger = createLogger({ level: 'silent', format: 'json' });

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const started: EmbeddedPostgres[] = [];
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  for (const postgres of started.splice(0)) await postgres.stop();
  await directory.close();
});

const start = async (log?: LogMode) => {
  const options = { dataDir: directory.path, logger, clock: systemClock, settings: { fsync: 'off' } };
  const postgres = new EmbeddedPostgres({ ...options, ...(log === undefined ? {} : { log }) });
  started.push(postgres);
  const { url } = await postgres.start();
  return { url, stop: () => postgres.stop() };
};

const ask = async (url: Secret, ...statements: string[]): Promise<unknown> => {
  const connection = await connectTo(url)();
  try {
    let rows: object[] = [];
    for (const statement of statements) rows = await connection.query(statement);
    return Object.values(rows[0] ?? {})[0];
  } finally {
    await connection.close();
  }
};

const files = () => postgresFiles(directory.path);
const spooled = (): string[] => readdirSync(files().spool).filter((name) => parseWalName(name) !== null);

/** Creates functions that the role can execute now, as one line each. Functions of everyone are left out. */
const GRANTED = `select string_agg(p.oid::regprocedure::text, ' ' order by p.proname)
  from pg_proc p, aclexplode(p.proacl) a where a.grantee = 'tunnel'::regrole`;

describe('the modes of the log', () => {
  it('the role can take backups and nothing else, also in a cluster of an earlier version', async () => {
    const before = await start();
    expect(await ask(before.url, 'show wal_level')).toBe('minimal');
    await expect(ask(before.url, "select pg_backup_start('x', true)")).rejects.toThrow('permission denied');
    expect(await ask(before.url, GRANTED)).toBeNull();
    await before.stop();

    const { url, stop } = await start('archive');
    expect(await ask(url, GRANTED)).toBe('pg_backup_start(text,boolean) pg_backup_stop(boolean) pg_switch_wal()');
    expect(await ask(url, "select pg_backup_start('x', true)", 'select labelfile from pg_backup_stop(false)')).toMatch(
      /^START WAL LOCATION/,
    );
    expect(
      await ask(url, 'select rolsuper or rolreplication or rolcreaterole from pg_roles where rolname = current_user'),
    ).toBe(false);
    for (const forbidden of [
      "select pg_read_file('/etc/hostname')",
      "select pg_read_file('postgresql.conf')",
      "select pg_read_binary_file('PG_VERSION')",
      "select pg_ls_dir('.')",
      'select pg_ls_waldir()',
      "copy (select 1) to program 'true'",
      "copy (select 1) to '/tmp/x'",
      "alter system set archive_command = 'true'",
      "set archive_command = 'true'",
      'set role postgres',
      'alter role tunnel superuser',
      'select pg_reload_conf()',
      'select pg_promote()',
      "select pg_create_restore_point('x')",
    ]) {
      await expect(ask(url, forbidden), forbidden).rejects.toThrow(/permission denied|cannot be changed|must be/);
    }
    await stop();
    expect(statSync(files().spool).mode & 0o777).toBe(0o700);
  });

  it('finished segments are copied to the spool, the last one when the database stops, and nothing is copied while switched off', async () => {
    const first = await start('archive');
    expect(existsSync(join(files().spool, SWITCHED_OFF))).toBe(true);
    await ask(first.url, 'create table t (n int)', 'select pg_switch_wal()');
    await eventually(async () =>
      expect(await ask(first.url, 'select archived_count from pg_stat_archiver')).not.toBe('0'),
    );
    expect(spooled()).toEqual([]);
    renameSync(join(files().spool, SWITCHED_OFF), join(files().spool, SWITCHED_ON));
    const lsn = await ask(first.url, 'insert into t values (1)', 'select pg_switch_wal()');
    await eventually(() => expect(spooled()).toHaveLength(1));
    expect(statSync(join(files().spool, spooled()[0] as string)).size).toBe(16 * 1024 * 1024);
    expect(lsn).toMatch(/^0\//);
    await ask(first.url, 'insert into t values (2)');
    await first.stop();
    expect(spooled()).toHaveLength(2);

    // A command without settings keeps the mode, so that the archive has no gap.
    const visitor = await start();
    expect(await ask(visitor.url, 'show archive_mode')).toBe('on');
    await ask(visitor.url, 'insert into t values (3)');
    await visitor.stop();
    expect(existsSync(join(files().spool, SWITCHED_ON))).toBe(true);
    expect(spooled().length).toBeGreaterThanOrEqual(3);
  });

  it('without backups the log is minimal again, no spool is left, and archiving begins anew switched off', async () => {
    const first = await start('archive');
    renameSync(join(files().spool, SWITCHED_OFF), join(files().spool, SWITCHED_ON));
    await first.stop();
    const { url, stop } = await start('minimal');
    expect([await ask(url, 'show wal_level'), await ask(url, 'show archive_mode')]).toEqual(['minimal', 'off']);
    expect(existsSync(files().spool)).toBe(false);
    await stop();
    expect(lastLogMode(files())).toBe('minimal');
    const kept = await start('replica');
    expect([await ask(kept.url, 'show wal_level'), await ask(kept.url, 'show archive_mode')]).toEqual([
      'replica',
      'off',
    ]);
    await kept.stop();
    const again = await start('archive');
    expect(readdirSync(files().spool)).toEqual([SWITCHED_OFF]);
    await again.stop();
    expect(readFileSync(files().logMode, 'utf8')).toBe('archive\n');
  });
});
