import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { embeddedUrl } from '../../apps/server/src/embedded-postgres/connection.ts';
import { ask, filesIn, openDatabaseHarness, pidOf, processesOf, serversOn } from './embedded-database.fixture.ts';

const { harness, used } = openDatabaseHarness();

const asRoot = process.getuid?.() === 0;
const onLinux = process.platform === 'linux';

const dialAsAnotherUser = (socket: string): string => {
  const script = `require('net').connect(process.argv[1]).on('connect', () => console.log('in')).on('error', (e) => console.log(e.code))`;
  const other = { uid: 4242, gid: 4242, cwd: '/', encoding: 'utf8' } as const;
  return execFileSync(process.execPath, ['-e', script, socket], other).trim();
};

describe('the embedded database', () => {
  it('is a durable PostgreSQL 18 in UTF-8 that listens only on a socket, with a role without access to files and programs', async () => {
    const postgres = harness.embedded(harness.copyOf(used), { settings: { fsync: 'on' } });
    const { url } = await postgres.start();
    expect(await ask(url, 'show server_version')).toMatch(/^18\./);
    expect(await ask(url, 'show server_encoding')).toBe('UTF8');
    expect(await ask(url, 'show listen_addresses')).toBe('');
    expect(await ask(url, 'show fsync')).toBe('on');
    expect(await ask(url, 'show synchronous_commit')).toBe('on');
    expect(await ask(url, "select upper('äöü')")).toBe('ÄÖÜ');
    expect(await ask(url, 'select rolsuper from pg_roles where rolname = current_user')).toBe(false);
    await expect(ask(url, "copy (select 1) to program 'true'")).rejects.toThrow('permission denied');
    await expect(ask(url, "select pg_read_file('/etc/hostname')")).rejects.toThrow('permission denied');
    await expect(ask(url, "select pg_read_file('postgresql.conf')")).rejects.toThrow('permission denied');
    await expect(ask(url, 'alter role tunnel superuser')).rejects.toThrow('permission denied');
    await expect(ask(url, 'set role postgres')).rejects.toThrow('permission denied');
  });

  it('accepts only its role with a password, which is readable only for its user and only while the database runs', async () => {
    const dataDir = harness.copyOf(used);
    expect(embeddedUrl(dataDir)).toBeNull();
    const postgres = harness.embedded(dataDir);
    const { url, socketFolder } = await postgres.start();
    expect(await ask(url, "select rolpassword ~ '^SCRAM-SHA-256' from pg_authid").catch(String)).toMatch(
      'permission denied',
    );
    const file = join(dataDir, 'postgres-support/password');
    const connection = join(dataDir, 'postgres-support/connection.json');
    expect([file, connection].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600]);
    const host = encodeURIComponent(socketFolder);
    const as = (who: string, name = 'tunnel'): Promise<unknown> =>
      ask(new Secret(`postgres:///${name}?host=${host}&${who}`), 'select 1');
    expect(await as(`user=tunnel&password=${readFileSync(file, 'utf8').trim()}`)).toBe(1);
    // Users who can enter the socket folder, root and the user of the server, still need the password.
    await expect(as('user=tunnel&password=guessed')).rejects.toThrow('password authentication failed');
    await expect(as('user=tunnel')).rejects.toThrow('password');
    for (const name of ['tunnel', 'postgres', 'template1']) {
      await expect(as('user=postgres&password=x', name)).rejects.toThrow('pg_hba.conf rejects connection');
    }
    if (asRoot && onLinux) expect(dialAsAnotherUser(join(socketFolder, '.s.PGSQL.5432'))).toBe('EACCES');
    expect(readFileSync(connection, 'utf8')).toContain('password=');
    expect(embeddedUrl(dataDir)?.reveal()).toBe(url.reveal());
    await postgres.stop();
    expect(embeddedUrl(dataDir)).toBeNull();
  });

  it.runIf(onLinux)('runs in a separate process group, leaves no process behind, and keeps its data', async () => {
    const dataDir = harness.copyOf(used);
    const postgres = harness.embedded(dataDir);
    const { url } = await postgres.start();
    const [pid] = serversOn(dataDir);
    expect(pid).toBe(postgres.pid);
    expect(Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[4])).toBe(pid);
    expect(processesOf(dataDir).length).toBeGreaterThan(3);
    expect(await ask(url, 'select n from kept')).toBe(42);
    await postgres.stop();
    await eventually(() => expect(processesOf(dataDir)).toEqual([]));
    expect(await ask((await postgres.start()).url, 'select n from kept')).toBe(42);
  });

  it.runIf(onLinux)('is back within 30 s after a kill, with all its data', async () => {
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

  it('refuses a second process on the same data directory', async () => {
    const dataDir = harness.copyOf(used);
    await harness.embedded(dataDir).start();
    const second = harness.embedded(dataDir);
    await expect(second.start()).rejects.toMatchObject({ code: 'CONFIG_DATA_DIR_IN_USE' });
    expect(serversOn(dataDir)).toHaveLength(1);
  });
});
