// A data directory with an embedded database, a folder of backups, and the commands of `tunnel-server backup`, inside the test process.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Secret, systemClock } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { expect } from 'vitest';
import { Database } from '../../apps/platform/src/db/database.ts';
import { EmbeddedPostgres } from '../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import type { LogMode } from '../../apps/server/src/embedded-postgres/log-mode.ts';
import { postgresFiles } from '../../apps/server/src/embedded-postgres/postgres-files.ts';
import { copyDatabase } from './database-template.fixture.ts';
import { ask, quiet } from './embedded-database.fixture.ts';
import { runServerCommand } from './server-command.fixture.ts';

export interface StageOptions {
  readonly wal?: boolean;
  readonly keys?: boolean;
}

export class BackupStage {
  readonly #root: TemporaryDirectory;
  readonly #started: EmbeddedPostgres[] = [];
  readonly #options: StageOptions;

  private constructor(root: TemporaryDirectory, options: StageOptions) {
    this.#root = root;
    this.#options = options;
  }

  static async open(options: StageOptions = {}): Promise<BackupStage> {
    const stage = new BackupStage(await temporaryDirectory(), options);
    await copyDatabase(stage.dataDir);
    await mkdir(join(stage.backupDir, 'wal'), { recursive: true, mode: 0o700 });
    for (const name of ['master-key', 'certificate-key', 'login-secret', 'admin-token']) {
      await writeFile(join(stage.dataDir, name), `${name}\n`, { mode: 0o600 });
    }
    return stage;
  }

  folder(name: string): string {
    return join(this.#root.path, name);
  }

  get dataDir(): string {
    return this.folder('data');
  }

  get backupDir(): string {
    return this.folder('backups');
  }

  get log(): LogMode {
    return this.#options.wal === false ? 'replica' : 'archive';
  }

  /** Starts the database of a data directory, as a server with `[backup] dir` does. */
  async start(dataDir = this.dataDir, log: LogMode = this.log): Promise<Secret> {
    const postgres = new EmbeddedPostgres({ dataDir, logger: quiet, clock: systemClock, log });
    this.#started.push(postgres);
    const { url } = await postgres.start();
    if (log === 'archive') await this.#switchOn(dataDir);
    return url;
  }

  async stop(): Promise<void> {
    for (const postgres of this.#started.splice(0)) await postgres.stop();
  }

  async close(): Promise<void> {
    await this.stop();
    await this.#root.close();
  }

  /** The database that was started last. */
  get postgres(): EmbeddedPostgres {
    const postgres = this.#started.at(-1);
    if (postgres === undefined) throw new Error('no database was started');
    return postgres;
  }

  /** Writes the config file of the stage, and returns its path. */
  writeConfig(): string {
    const { wal = true, keys = true } = this.#options;
    const file = this.folder('server.toml');
    const lines = [
      `data_dir = "${this.dataDir}"`,
      '[backup]',
      `dir = "${this.backupDir}"`,
      `wal = ${wal}`,
      `keys = ${keys}`,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    return file;
  }

  /** Runs `tunnel-server backup …` with the configuration of the stage. */
  run(...args: string[]): ReturnType<typeof runServerCommand> {
    return runServerCommand(['backup', ...args, '--config', this.writeConfig()]);
  }

  /** Runs a command that must succeed, and returns its output. */
  async succeed(...args: string[]): Promise<readonly string[]> {
    const { code, stdout, stderr } = await this.run(...args);
    expect(code, [...args, ...stderr].join('\n')).toBe(0);
    return stdout;
  }

  /** Takes a backup and returns its name. */
  async create(...args: string[]): Promise<string> {
    const [name = ''] = await this.succeed('create', ...args);
    return name;
  }

  /** Ends the current segment, and moves all segments from the spool to the archive. */
  async archive(url: Secret, dataDir = this.dataDir): Promise<void> {
    const current = await ask(url, 'select pg_walfile_name(pg_switch_wal())');
    await eventually(
      () => {
        this.#emptySpool(dataDir);
        expect(readdirSync(join(this.backupDir, 'wal'))).toContain(`${String(current)}.gz`);
      },
      { timeoutMs: 30_000 },
    );
  }

  #emptySpool(dataDir: string): void {
    const { spool } = postgresFiles(dataDir);
    for (const name of readdirSync(spool)) {
      if (!/^[0-9A-F]{8}/.test(name) || name.endsWith('.part')) continue;
      const target = join(this.backupDir, 'wal', `${name}.gz`);
      writeFileSync(target, gzipSync(readFileSync(join(spool, name)), { level: 1 }), { mode: 0o600 });
      rmSync(join(spool, name));
    }
  }

  async #switchOn(dataDir: string): Promise<void> {
    const { spool } = postgresFiles(dataDir);
    await rename(join(spool, 'switched-off'), join(spool, 'switched-on')).catch(() => {});
  }
}

/** Waits for a condition, often checked. */
export const until = (condition: () => boolean): Promise<void> =>
  eventually(() => expect(condition()).toBe(true), { timeoutMs: 60_000, intervalMs: 5 });

/** Inserts a row every few milliseconds, with its number and time, until it is stopped. Returns the committed rows. */
export const writeRows = (url: Secret) => {
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
