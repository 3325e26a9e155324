import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { embeddedUrl } from '../../apps/server/src/embedded-postgres/connection.ts';
import { ask, openDatabaseHarness, processesOf, serversOn } from './embedded-database.fixture.ts';

const { harness, used } = openDatabaseHarness();

const asRoot = process.getuid?.() === 0;
const onLinux = process.platform === 'linux';

/** Not 0 for a server that does not run: to a kill that is the test's own process group. */
const pidOf = ({ pid }: { readonly pid: number | undefined }): number => {
  if (pid === undefined) throw new Error('no server is running');
  return pid;
};

const filesIn = (dataDir: string): string[] => (existsSync(dataDir) ? readdirSync(dataDir) : []);

describe('the embedded database', () => {
  it('is a PostgreSQL 18 in UTF-8 that is durable and listens on its socket alone', async () => {
    const postgres = harness.embedded(harness.copyOf(used), { settings: { fsync: 'on' } });
    const { url } = await postgres.start();
    expect(await ask(url, 'show server_version')).toMatch(/^18\./);
    expect(await ask(url, 'show server_encoding')).toBe('UTF8');
    expect(await ask(url, 'show listen_addresses')).toBe('');
    expect(await ask(url, 'show fsync')).toBe('on');
    expect(await ask(url, 'show synchronous_commit')).toBe('on');
    expect(await ask(url, "select upper('äöü')")).toBe('ÄÖÜ');
  });

  it('is used by a role that may not touch files or programs', async () => {
    const { url } = await harness.embedded(harness.copyOf(used)).start();
    expect(await ask(url, 'select rolsuper from pg_roles where rolname = current_user')).toBe(false);
    await expect(ask(url, "copy (select 1) to program 'true'")).rejects.toThrow('permission denied');
    await expect(ask(url, "select pg_read_file('/etc/hostname')")).rejects.toThrow('permission denied');
    await expect(ask(url, "select pg_read_file('postgresql.conf')")).rejects.toThrow('permission denied');
    await expect(ask(url, 'alter role tunnel superuser')).rejects.toThrow('permission denied');
    await expect(ask(url, 'set role postgres')).rejects.toThrow('permission denied');
  });

  it('lets one role in, by its password alone, which is in a file for this user alone', async () => {
    const dataDir = harness.copyOf(used);
    const { url, socketFolder } = await harness.embedded(dataDir).start();
    expect(await ask(url, "select rolpassword ~ '^SCRAM-SHA-256' from pg_authid").catch(String)).toMatch(
      'permission denied',
    );
    const file = join(dataDir, 'postgres-support/password');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const host = encodeURIComponent(socketFolder);
    const as = (who: string, name = 'tunnel'): Promise<unknown> =>
      ask(new Secret(`postgres:///${name}?host=${host}&${who}`), 'select 1');
    expect(await as(`user=tunnel&password=${readFileSync(file, 'utf8').trim()}`)).toBe(1);
    // Whoever else may enter the folder of the socket: root, and the user that the server runs as.
    await expect(as('user=tunnel&password=guessed')).rejects.toThrow('password authentication failed');
    await expect(as('user=tunnel')).rejects.toThrow('password');
    for (const name of ['tunnel', 'postgres', 'template1']) {
      await expect(as('user=postgres&password=x', name)).rejects.toThrow('pg_hba.conf rejects connection');
    }
    expect(readFileSync(join(dataDir, 'postgres-support/connection.json'), 'utf8')).toContain('password=');
  });

  it.runIf(asRoot && onLinux)('is out of reach for another user of the machine', async () => {
    const { url, socketFolder } = await harness.embedded(harness.copyOf(used)).start();
    expect(await ask(url, 'select 1')).toBe(1);
    const script = `require('net').connect(process.argv[1]).on('connect', () => console.log('in')).on('error', (e) => console.log(e.code))`;
    const socket = join(socketFolder, '.s.PGSQL.5432');
    const said = execFileSync(process.execPath, ['-e', script, socket], {
      uid: 4242,
      gid: 4242,
      cwd: '/',
      encoding: 'utf8',
    });
    expect(said.trim()).toBe('EACCES');
  });

  it('keeps what was stored over a restart, and starts fast', async () => {
    const dataDir = harness.copyOf(used);
    for (const _ of ['first', 'second']) {
      const postgres = harness.embedded(dataDir);
      const { url } = await postgres.start();
      expect(await ask(url, 'select n from kept')).toBe(42);
      await postgres.stop();
    }
  });

  it('tells commands beside it how to reach it, for this user alone, as long as it runs', async () => {
    const dataDir = harness.copyOf(used);
    expect(embeddedUrl(dataDir)).toBeNull();
    const postgres = harness.embedded(dataDir);
    const { url } = await postgres.start();
    expect(embeddedUrl(dataDir)?.reveal()).toBe(url.reveal());
    expect(statSync(join(dataDir, 'postgres-support/connection.json')).mode & 0o777).toBe(0o600);
    await postgres.stop();
    expect(embeddedUrl(dataDir)).toBeNull();
  });

  it.runIf(onLinux)('runs in a process group of its own, and leaves no process behind when it is stopped', async () => {
    const dataDir = harness.copyOf(used);
    const postgres = harness.embedded(dataDir);
    const { url } = await postgres.start();
    const [pid] = serversOn(dataDir);
    expect(pid).toBe(postgres.pid);
    expect(Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[4])).toBe(pid);
    expect(processesOf(dataDir).length).toBeGreaterThan(3);
    expect(await ask(url, 'select 1')).toBe(1);
    await postgres.stop();
    await eventually(() => expect(processesOf(dataDir)).toEqual([]));
  });

  it('stops while a transaction is open, and that transaction never was', async () => {
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

  it.runIf(onLinux)('is back within 10 s after it was killed, with all that was stored', async () => {
    const dataDir = harness.copyOf(used);
    const postgres = harness.embedded(dataDir);
    const { url } = await postgres.start();
    await ask(url, 'insert into kept values (44)');
    const killed = pidOf(postgres);
    process.kill(killed, 'SIGKILL');
    await eventually(async () => expect(await ask(url, 'select sum(n) from kept')).toBe(86), { timeoutMs: 30_000 });
    expect(postgres.pid).not.toBe(killed);
    expect(serversOn(dataDir)).toEqual([postgres.pid]);
  });

  it.runIf(onLinux)('is back after somebody told it to end, though connections were open', async () => {
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

  it('can be stopped while it is being started again', async () => {
    const dataDir = harness.copyOf(used);
    const postgres = harness.embedded(dataDir);
    await postgres.start();
    process.kill(pidOf(postgres), 'SIGKILL');
    await postgres.stop();
    await eventually(() => expect(processesOf(dataDir)).toEqual([]));
  });

  it('can be stopped at any moment of its start, and started again', async () => {
    const dataDir = harness.folder();
    const postgres = harness.embedded(dataDir);
    const moments = [
      () => filesIn(dataDir).some((name) => name.startsWith('postgres.unfinished')),
      () => filesIn(dataDir).includes('postgres'),
      () => existsSync(join(dataDir, 'postgres/postmaster.pid')),
    ];
    for (const hasCome of moments) {
      const start = postgres.start().then(
        () => 'started',
        () => 'stopped',
      );
      await eventually(() => expect(hasCome()).toBe(true), { timeoutMs: 30_000, intervalMs: 1 });
      await postgres.stop();
      expect(['started', 'stopped']).toContain(await start);
      await eventually(() => expect(processesOf(dataDir)).toEqual([]));
    }
    expect(await ask((await postgres.start()).url, 'select 1')).toBe(1);
  });

  it('is held by one process at a time', async () => {
    const dataDir = harness.copyOf(used);
    await harness.embedded(dataDir).start();
    const second = harness.embedded(dataDir);
    await expect(second.start()).rejects.toMatchObject({ code: 'CONFIG_DATA_DIR_IN_USE' });
    expect(serversOn(dataDir)).toHaveLength(1);
  });

  it.each([
    // Killed after making the file and before writing to it, a server would leave every later one with a refusal.
    ['are empty', ''],
    ['name a program that is no database', `${process.pid}\n`],
  ])('starts over lock files of a killed server that %s', async (_, text) => {
    const dataDir = harness.copyOf(used);
    for (const file of ['postmaster.pid', 'run/.s.PGSQL.5432.lock']) {
      writeFileSync(join(dataDir, 'postgres', file), text, { mode: 0o600 });
    }
    const { url } = await harness.embedded(dataDir).start();
    expect(await ask(url, 'select n from kept')).toBe(42);
  });

  it('is made anew after a first start that was cut short', async () => {
    const dataDir = harness.folder();
    mkdirSync(join(dataDir, 'postgres.unfinished.before'), { recursive: true });
    writeFileSync(join(dataDir, 'postgres.unfinished.before/PG_VERSION'), '18\n');
    const { url } = await harness.embedded(dataDir).start();
    expect(await ask(url, 'select 1')).toBe(1);
    expect(filesIn(dataDir).sort((a, b) => a.localeCompare(b))).toEqual(['postgres', 'postgres-support']);
  });
});
