// The embedded database in places and with clusters that few people have.
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
import { ask, openDatabaseHarness, processesOf } from './embedded-database.fixture.ts';

const { harness, used } = openDatabaseHarness();

const asRoot = process.getuid?.() === 0;

describe('a place that is not made for it', () => {
  it('may have a path that is too long for a socket', async () => {
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

  it('may have a path with spaces, quotes and commas', async () => {
    const { url } = await harness.embedded(harness.copyOf(used, harness.folder(`it's, "here" ?&%41`))).start();
    expect(await ask(url, 'select n from kept')).toBe(42);
  });

  it.runIf(asRoot)('may be below a folder that only root may enter', async () => {
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

  it('may have a package without the links of its libraries, in a folder that stays as it is', async () => {
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
      // Only root could remove what is in it otherwise.
      chmodSync(join(packageDir, 'native/lib'), 0o755);
    }
  });

  it('is refused in one line that names it, when it holds a cluster of another version', async () => {
    const dataDir = harness.copyOf(used);
    writeFileSync(join(dataDir, 'postgres/PG_VERSION'), '17\n');
    const start = harness.embedded(dataDir).start();
    await expect(start).rejects.toMatchObject({ code: 'CONFIG_DATABASE_EMBEDDED' });
    await expect(start).rejects.toThrow(`${dataDir}/postgres: it was made by PostgreSQL 17`);
  });

  it('is refused with what PostgreSQL says of it, and left without a process', async () => {
    const dataDir = harness.copyOf(used);
    rmSync(join(dataDir, 'postgres/global/pg_control'));
    const start = harness.embedded(dataDir).start();
    await expect(start).rejects.toMatchObject({ code: 'CONFIG_DATABASE_EMBEDDED' });
    await expect(start).rejects.toThrow('pg_control');
    await eventually(() => expect(processesOf(dataDir)).toEqual([]));
  });
});

describe('a cluster of before', () => {
  it('moves a folder of before over: its role gets a password, and nobody is let in without one any more', async () => {
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

  it('says what PostgreSQL says when its role cannot be given a password, and never the password', async () => {
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

  it('takes a cluster that was put back from a copy with another password', async () => {
    const dataDir = harness.copyOf(used);
    writeFileSync(join(dataDir, 'postgres-support/password'), 'another-one\n', { mode: 0o600 });
    const { url } = await harness.embedded(dataDir).start();
    expect(await ask(url, 'select n from kept')).toBe(42);
  });
});
