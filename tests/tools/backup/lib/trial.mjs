// A server with backups, as executables, and what a trial does to it: commands, restores, kills, and a look at every row of a database.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { Database } from '../../../../apps/platform/src/db/database.ts';
import { embeddedUrl } from '../../../../apps/server/src/embedded-postgres/connection.ts';
import { EmbeddedPostgres } from '../../../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { createLogger, systemClock } from '../../../../packages/runtime/src/index.ts';
import { processesOf, serversOn } from '../../../system/embedded-database.fixture.ts';
import { Harness } from '../../../system/harness.fixture.ts';
import { partsOf } from '../../../system/kill-trial.fixture.ts';
import { withoutOurEnvironment } from '../../../system/stack.fixture.ts';
import { until } from '../../lib/until.mjs';

export const quiet = createLogger({ format: 'human', level: 'silent' });

/** Time limit for what takes seconds on an idle machine. */
export const PATIENCE = { timeoutMs: 180_000, everyMs: 100 };

const BACKUP_NAME = /^\d{8}T\d{6}Z/;

export class BackupTrial {
  /** Starts a server. `settings` are more lines of the table [backup]; `dir` is the folder of the backups. */
  static async open({ settings = '', dir } = {}) {
    const harness = new Harness();
    const backups = dir ?? join(await harness.folder(), 'backups');
    const tables = `[backup]\ndir = "${backups}"\n${settings}`;
    const stack = await harness.stack({ command: 'stack', fixedPorts: true, tables });
    return new BackupTrial(harness, stack, backups);
  }

  constructor(harness, stack, backups) {
    Object.assign(this, { harness, stack, backups });
  }

  get dataDir() {
    return this.stack.dataDir;
  }

  get url() {
    return embeddedUrl(this.dataDir);
  }

  /** Names of the finished backups, oldest first. */
  get names() {
    return namesIn(join(this.backups, 'base')).filter((name) => BACKUP_NAME.test(name));
  }

  /** What an interrupted backup leaves behind until the next one. */
  get unfinished() {
    return namesIn(join(this.backups, 'base')).filter((name) => name.endsWith('.part'));
  }

  /** Waits until one more backup than `before` is finished. Returns its name. */
  async nextBackup(before = []) {
    return until('a finished backup', () => this.names.find((name) => !before.includes(name)), PATIENCE);
  }

  /** Runs `tunnel-server backup …` as an executable. */
  command(args, { onSpawn } = {}) {
    return runServer(this.stack, ['backup', ...args, ...this.stack.flags], onSpawn);
  }

  /** Runs a command that must succeed, and returns its output. */
  async must(...args) {
    const { code, stdout, stderr } = await this.command(args);
    if (code !== 0) throw new Error(`backup ${args.join(' ')}: exit code ${code}: ${stderr}`);
    return stdout.trim();
  }

  restore(to, ...more) {
    return this.command(['restore', '--from', this.backups, '--to', to, ...more]);
  }

  /** Ends the current segment of the log, and waits until the archive has it. */
  async archiveAll() {
    const name = await ask(this.url, 'select pg_walfile_name(pg_switch_wal())');
    await until(`${name} in the archive`, () => existsSync(join(this.backups, 'wal', `${name}.gz`)), PATIENCE);
  }

  /** Waits until a segment that was finished after this call is in the archive. */
  async waitForArchive() {
    const before = new Set(namesIn(join(this.backups, 'wal')));
    await until(
      'a new segment in the archive',
      async () => {
        await ask(this.url, 'select pg_switch_wal()').catch(() => {});
        await ask(this.url, 'create table if not exists log_tick as select 1 as n').catch(() => {});
        await ask(this.url, 'update log_tick set n = n + 1').catch(() => {});
        return namesIn(join(this.backups, 'wal')).some((name) => !before.has(name));
      },
      { ...PATIENCE, everyMs: 1000 },
    );
  }

  pidOf(part) {
    if (part === 'parent') return this.stack.program.pid;
    if (part === 'database') return serversOn(this.dataDir)[0];
    return partsOf(this.dataDir).find(({ name }) => name === part)?.pid;
  }

  /** Puts a restored data directory in place of the server's, as docs/backup.md describes. The server is stopped. */
  replaceBy(restored) {
    renameSync(this.dataDir, `${this.dataDir}-old`);
    renameSync(restored, this.dataDir);
  }

  async gone() {
    await until('no process of the server', () => processesOf(this.dataDir).length === 0, PATIENCE);
  }

  folder() {
    return this.harness.folder();
  }

  async close() {
    await this.harness.close();
  }
}

export const namesIn = (folder) => {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
};

/** Runs `tunnel-server` and resolves with its exit code and output. A program that was ended by a signal has no code. */
export function runServer(stack, args, onSpawn = () => {}) {
  const child = spawn(process.execPath, [stack.bin, ...args], {
    env: { ...process.env, ...withoutOurEnvironment() },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      said[name] += text;
    });
  }
  onSpawn(child);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...said }));
  });
}

/** Returns the first value of the first row. */
export async function ask(url, query) {
  const database = new Database({ url, logger: quiet, connections: 1 });
  try {
    const { rows } = await database.pool.query(query);
    return Object.values(rows[0] ?? {})[0];
  } finally {
    await database.close();
  }
}

/** Starts only the database of a data directory, and stops it afterwards. */
export async function withDatabase(dataDir, work) {
  const postgres = new EmbeddedPostgres({ dataDir, logger: quiet, clock: systemClock });
  const { url } = await postgres.start();
  try {
    return await work(url);
  } finally {
    await postgres.stop();
  }
}

/** Reads every row of every table. Returns the number of rows and a sum over their text, by table. */
export async function readAll(url, only = () => true) {
  const tables = "select string_agg(tablename, ' ' order by tablename) from pg_tables where schemaname = 'public'";
  const found = {};
  for (const table of String(await ask(url, tables))
    .split(' ')
    .filter(only)) {
    const sum = `select count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)), 0) from "${table}" as t`;
    found[table] = await ask(url, sum);
  }
  return found;
}
