// A trial of backups of a whole stack under load: rows with their time are written every 10 ms while backups are taken and restored. A
// script runs many rounds.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Secret, systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { Database } from '../../apps/platform/src/db/database.ts';
import { EmbeddedPostgres } from '../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { ask, quiet } from './embedded-database.fixture.ts';
import { Harness } from './harness.fixture.ts';
import { spawnedServerCommand } from './server-command.fixture.ts';
import type { Stack } from './stack.fixture.ts';

const WRITE_EVERY_MS = 10;
const SOON = { timeoutMs: 120_000, intervalMs: 500 };

export interface Row {
  readonly n: number;
  /** Time before the commit, in milliseconds. */
  readonly at: number;
  /** Time at which the commit was confirmed. */
  readonly doneAt: number;
}

interface Listed {
  readonly name: string;
  readonly wal_to: string;
}

export class BackupTrial {
  readonly stack: Stack;
  readonly rows: Row[] = [];
  readonly #harness: Harness;
  readonly #backupDir: string;
  readonly #writing: Promise<void>;
  #isOver = false;
  #folders = 0;

  private constructor(harness: Harness, stack: Stack, backupDir: string) {
    this.#harness = harness;
    this.stack = stack;
    this.#backupDir = backupDir;
    this.#writing = this.#write();
  }

  static async open(): Promise<BackupTrial> {
    const harness = new Harness();
    const backupDir = await harness.folder();
    const stack = await harness.stack({
      command: 'stack',
      fixedPorts: true,
      tables: `[backup]\ndir = "${backupDir}"\nevery_hours = 0\nkeep = 3`,
    });
    return new BackupTrial(harness, stack, backupDir);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#writing;
    await this.#harness.close();
  }

  get #url(): Secret {
    const url = this.stack.databaseUrl;
    if (url === null) throw new Error('the stack has no database');
    return url;
  }

  async #write(): Promise<void> {
    const database = new Database({ url: this.#url, logger: quiet, connections: 1 });
    await database.pool.query('create table written (n integer primary key, filler text)');
    for (let n = 1; !this.#isOver; n += 1) {
      const at = Date.now();
      await database.pool.query('insert into written values ($1, repeat(md5(random()::text), 20))', [n]);
      this.rows.push({ n, at, doneAt: Date.now() });
      await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, WRITE_EVERY_MS));
    }
    await database.close();
  }

  /** Fills a table until it has the given size. */
  async fill(megabytes: number): Promise<void> {
    const database = new Database({ url: this.#url, logger: quiet, connections: 1, patient: true });
    await database.pool.query('create table if not exists filler (text text)');
    for (let done = 0; done < megabytes; done += 50) {
      await database.pool.query(
        'insert into filler select repeat(md5(n::text), 31) from generate_series(1, 48000) as n',
      );
    }
    await database.pool.query('checkpoint').catch(() => {});
    await database.close();
  }

  /** Takes a backup, and returns its name and the duration. */
  async create(): Promise<{ readonly name: string; readonly ms: number }> {
    const from = performance.now();
    const [name = ''] = await spawnedServerCommand(this.stack, 'backup', 'create');
    return { name, ms: performance.now() - from };
  }

  verify(name: string): Promise<readonly string[]> {
    return spawnedServerCommand(this.stack, 'backup', 'verify', name);
  }

  /** Restores a backup, or a moment, and returns the numbers of the rows in it, after reading every table. */
  async restore(from: string | null, at: number | null): Promise<readonly number[]> {
    this.#folders += 1;
    const folder = await this.#harness.folder();
    const to = join(folder, `restored-${this.#folders}`);
    const source = from === null ? this.#backupDir : join(this.#backupDir, from);
    const time = at === null ? [] : ['--time', new Date(at).toISOString()];
    await spawnedServerCommand(this.stack, 'backup', 'restore', '--from', source, '--to', to, ...time);
    const postgres = new EmbeddedPostgres({ dataDir: to, logger: quiet, clock: systemClock });
    const { url } = await postgres.start();
    const database = new Database({ url, logger: quiet, connections: 1, patient: true });
    try {
      const { rows: tables } = await database.pool.query<{ name: string }>(
        "select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables where schemaname <> 'information_schema' and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'select')",
      );
      for (const { name } of tables)
        await database.pool.query(`select count(*), max(length(t::text)) from ${name} as t`);
      const { rows } = await database.pool.query<{ n: number }>('select n from written order by n');
      return rows.map(({ n }) => n);
    } finally {
      await database.close();
      await postgres.stop();
    }
  }

  /** Waits until the archive reaches beyond a time. */
  async archived(at: number): Promise<void> {
    await ask(this.#url, 'select pg_switch_wal()');
    await eventually(async () => {
      const [newest] = JSON.parse(
        (await spawnedServerCommand(this.stack, 'backup', 'list', '--json')).join(''),
      ) as Listed[];
      if (Date.parse(newest?.wal_to ?? '') <= at) throw new Error('the log is not archived yet');
    }, SOON);
  }

  /** Calls the platform every 100 ms until `work` is done, and returns the longest response time. */
  async slowestDuring(work: Promise<unknown>): Promise<number> {
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    let slowestMs = 0;
    while (!isDone) {
      const from = performance.now();
      const response = await fetch(`${this.stack.run.platform_url}/health/db`);
      await response.text();
      slowestMs = Math.max(slowestMs, response.ok ? performance.now() - from : Number.POSITIVE_INFINITY);
      await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 100));
    }
    await done;
    return slowestMs;
  }

  /** Highest memory of a process so far, in MB. Linux only. */
  memoryMb(pid = this.stack.program.pid): number {
    const [, kb = '0'] = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kb) / 1024;
  }
}
