// Tests of the embedded database in unusual places, with unusual clusters, and with rare ends and starts.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { embeddedUrl } from '../../apps/server/src/embedded-postgres/connection.ts';
import { findPackage } from '../../apps/server/src/embedded-postgres/programs.ts';
import { openToAll, superuserUrl } from '../superuser.fixture.ts';
import { ask, filesIn, openDatabaseHarness, pidOf, processesOf, serversOn } from './embedded-database.fixture.ts';

const { harness, used } = openDatabaseHarness();

const asRoot = process.getuid?.() === 0;
const onLinux = process.platform === 'linux';

describe('an unusual data directory', () => {
  it('can have a path that is too long for a socket', async () => {
    const dataDir = harness.copyOf(used, harness.folder(`${'long'.repeat(30)}/data`));
    const postgres = harness.embedded(dataDir);
    const { url, socketFolder } = await postgres.start();
    expect(socketFolder.startsWith(dataDir)).toBe(false);
    expect(statSync(socketFolder).mode & 0o777).toBe(0o700);
    expect(await ask(url, 'select n from kept')).toBe(42);
    expect(await ask(embeddedUrl(dataDir) ?? url, 'select 1')).toBe(1);
    await postgres.stop();
    expect(existsSync(socketFolder)).toBe(false);
  });

  it('can have a path with spaces, quotes and commas', async () => {
    const { url } = await harness.embedded(harness.copyOf(used, harness.folder(`it's, "here" ?&%41`))).start();
    expect(await ask(url, 'select n from kept')).toBe(42);
  });

  it.runIf(asRoot)('can be below a folder that only root can enter', async () => {
    const home = harness.folder('root-home');
    mkdirSync(home, { mode: 0o700 });
    const dataDir = harness.copyOf(used, join(home, 'data'));
    const postgres = harness.embedded(dataDir);
    const { url } = await postgres.start();
    expect(await ask(url, 'select n from kept')).toBe(42);
    expect(statSync(`/proc/${postgres.pid}`).uid).not.toBe(0);
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect([statSync(home).uid, statSync(dataDir).uid]).toEqual([0, 0]);
    expect(statSync(join(dataDir, 'postgres')).uid).not.toBe(0);
  });

  it('works with a read-only package without library links, which stays unchanged', async () => {
    const packageDir = harness.folder('package');
    cpSync(findPackage() ?? '', packageDir, { recursive: true, verbatimSymlinks: true });
    const links = JSON.parse(readFileSync(join(packageDir, 'native/pg-symlinks.json'), 'utf8')) as { target: string }[];
    for (const { target } of links) rmSync(join(packageDir, target), { force: true });
    const before = readdirSync(packageDir, { recursive: true });
    chmodSync(join(packageDir, 'native/lib'), 0o555);
    try {
      const { url } = await harness.embedded(harness.folder(), { packageDir }).start();
      expect(await ask(url, 'select 1')).toBe(1);
      expect(readdirSync(packageDir, { recursive: true })).toEqual(before);
    } finally {
      // Without write permission only root could remove the files of the folder.
      chmodSync(join(packageDir, 'native/lib'), 0o755);
    }
  });

  it('with a cluster of another PostgreSQL version is refused with its path and version', async () => {
    const dataDir = harness.copyOf(used);
    writeFileSync(join(dataDir, 'postgres/PG_VERSION'), '17\n');
    const start = harness.embedded(dataDir).start();
    await expect(start).rejects.toMatchObject({ code: 'CONFIG_DATABASE_EMBEDDED' });
    await expect(start).rejects.toThrow(`${dataDir}/postgres: the database was created by PostgreSQL 17`);
  });

  it('with a broken cluster is refused with the error of PostgreSQL, and no process remains', async () => {
    const dataDir = harness.copyOf(used);
    rmSync(join(dataDir, 'postgres/global/pg_control'));
    const start = harness.embedded(dataDir).start();
    await expect(start).rejects.toMatchObject({ code: 'CONFIG_DATABASE_EMBEDDED' });
    await expect(start).rejects.toThrow('pg_control');
    await eventually(() => expect(processesOf(dataDir)).toEqual([]));
  });
});

describe('an existing cluster', () => {
  it('without a password is migrated: its role gets a password, and access without a password is rejected', async () => {
    const dataDir = harness.copyOf(used);
    const before = harness.embedded(dataDir, { settings: { hba_file: openToAll(dataDir) } });
    await ask(superuserUrl((await before.start()).socketFolder), 'alter role tunnel password null');
    await before.stop();
    rmSync(join(dataDir, 'postgres-support'), { recursive: true });
    rmSync(join(dataDir, 'postgres/tunnel-password.sha256'));
    writeFileSync(join(dataDir, 'postgres/pg_hba.conf'), 'local all all trust\n');
    const { url, socketFolder } = await harness.embedded(dataDir).start();
    expect(await ask(url, 'select n from kept')).toBe(42);
    await expect(ask(superuserUrl(socketFolder), 'select 1')).rejects.toThrow('pg_hba.conf rejects connection');
  });

  it('without the expected role is refused with the error of PostgreSQL, and without printing the password', async () => {
    const dataDir = harness.copyOf(used);
    const open = { settings: { hba_file: openToAll(dataDir) } };
    const before = harness.embedded(dataDir, open);
    await ask(superuserUrl((await before.start()).socketFolder), 'alter role tunnel rename to other');
    await before.stop();
    writeFileSync(join(dataDir, 'postgres-support/password'), 'a-new-one\n', { mode: 0o600 });
    const start = harness.embedded(dataDir).start();
    await expect(start).rejects.toMatchObject({ code: 'CONFIG_DATABASE_EMBEDDED' });
    await expect(start).rejects.toThrow('role "tunnel" does not exist');
    await expect(start).rejects.not.toThrow('a-new-one');
  });

  it('restored from a backup with another password is accepted', async () => {
    const dataDir = harness.copyOf(used);
    writeFileSync(join(dataDir, 'postgres-support/password'), 'another-one\n', { mode: 0o600 });
    const { url } = await harness.embedded(dataDir).start();
    expect(await ask(url, 'select n from kept')).toBe(42);
  });
});

describe('a database server that is stopped or killed', () => {
  it('stops despite an open transaction, which is rolled back', async () => {
    const dataDir = harness.copyOf(used);
    const postgres = harness.embedded(dataDir);
    const { url } = await postgres.start();
    const cut = ask(url, 'insert into kept select 43 from pg_sleep(60)').then(
      () => 'stored',
      () => 'cut',
    );
    await eventually(async () =>
      expect(await ask(url, "select count(*) from pg_stat_activity where query like 'insert%'")).toBe(1),
    );
    await postgres.stop();
    expect(await cut).toBe('cut');
    expect(await ask((await postgres.start()).url, 'select count(*) from kept')).toBe(1);
  });

  it.runIf(onLinux)('restarts after a foreign SIGTERM, even with open connections', async () => {
    const dataDir = harness.copyOf(used);
    const postgres = harness.embedded(dataDir);
    const { url } = await postgres.start();
    const told = pidOf(postgres);
    const held = ask(url, 'select pg_sleep(600)').catch((error: Error) => error.message);
    await eventually(async () =>
      expect(await ask(url, "select count(*) from pg_stat_activity where query like '%pg_sleep(600)'")).toBe(1),
    );
    process.kill(told, 'SIGTERM');
    expect(await held).toMatch(/^terminating connection/);
    await eventually(async () => expect(await ask(url, 'select n from kept')).toBe(42), { timeoutMs: 30_000 });
    expect(serversOn(dataDir)).toEqual([postgres.pid]);
    expect(postgres.pid).not.toBe(told);
  });

  it('can be stopped during its restart', async () => {
    const dataDir = harness.copyOf(used);
    const postgres = harness.embedded(dataDir);
    await postgres.start();
    process.kill(pidOf(postgres), 'SIGKILL');
    await postgres.stop();
    await eventually(() => expect(processesOf(dataDir)).toEqual([]));
  });

  it.each([
    // A server killed between the creation and the first write of a lock file would make every later server refuse to start.
    ['are empty', ''],
    ['name a program that is no database', `${process.pid}\n`],
  ])('starts despite lock files of a killed server that %s', async (_, text) => {
    const dataDir = harness.copyOf(used);
    for (const file of ['postmaster.pid', 'run/.s.PGSQL.5432.lock']) {
      writeFileSync(join(dataDir, 'postgres', file), text, { mode: 0o600 });
    }
    const { url } = await harness.embedded(dataDir).start();
    expect(await ask(url, 'select n from kept')).toBe(42);
  });

  it('is created again after an interrupted first start', async () => {
    const dataDir = harness.folder();
    mkdirSync(join(dataDir, 'postgres.unfinished.before'), { recursive: true });
    writeFileSync(join(dataDir, 'postgres.unfinished.before/PG_VERSION'), '18\n');
    const { url } = await harness.embedded(dataDir).start();
    expect(await ask(url, 'select 1')).toBe(1);
    expect(filesIn(dataDir).sort((a, b) => a.localeCompare(b))).toEqual(['postgres', 'postgres-support']);
  });
});
