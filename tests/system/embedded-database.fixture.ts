// Embedded databases for tests: data directories that go when the test ends, and what can be seen of a server from outside.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, type Secret, systemClock } from '@tunnel/runtime';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { Database } from '../../apps/platform/src/db/database.ts';
import {
  EmbeddedPostgres,
  type EmbeddedPostgresOptions,
} from '../../apps/server/src/embedded-postgres/embedded-postgres.ts';

export const quiet = createLogger({ format: 'human', level: 'silent' });

export class DatabaseHarness {
  readonly #root = mkdtempSync(join(tmpdir(), 'tunnel-harness-'));
  readonly #started: EmbeddedPostgres[] = [];
  #folders = 0;

  /** A fresh path; nothing is there yet. */
  folder(name = `d${++this.#folders}`): string {
    return join(this.#root, name);
  }

  /** A data directory whose cluster is a copy of the one in `from`: faster than a new one. */
  copyOf(from: string, to = this.folder()): string {
    mkdirSync(join(to, 'postgres'), { recursive: true, mode: 0o700 });
    cpSync(join(from, 'postgres'), join(to, 'postgres'), { recursive: true });
    mkdirSync(join(to, 'postgres-support'), { mode: 0o755 });
    cpSync(join(from, 'postgres-support/password'), join(to, 'postgres-support/password'));
    return to;
  }

  embedded(dataDir: string, more: Partial<EmbeddedPostgresOptions> = {}): EmbeddedPostgres {
    const settings = { fsync: 'off', ...more.settings };
    const postgres = new EmbeddedPostgres({ dataDir, logger: quiet, clock: systemClock, ...more, settings });
    this.#started.push(postgres);
    return postgres;
  }

  async stopAll(): Promise<void> {
    for (const postgres of this.#started.splice(0)) await postgres.stop();
  }

  /** All folders but this one: those of one test at a time, because at the end of many tests the disk needs minutes for all of them. */
  removeAllBut(kept: string): void {
    for (const name of readdirSync(this.#root)) {
      const path = join(this.#root, name);
      if (path !== kept) rmSync(path, { recursive: true, force: true });
    }
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}

/** The first value of the first row. */
export const ask = async (url: Secret, query: string): Promise<unknown> => {
  const database = new Database({ url, logger: quiet, connections: 1 });
  try {
    const { rows } = await database.pool.query<Record<string, unknown>>(query);
    return Object.values(rows[0] ?? {})[0];
  } finally {
    await database.close();
  }
};

/** Not 0 for a server that does not run: to a kill that is the test's own process group. */
export const pidOf = ({ pid }: { readonly pid: number | undefined }): number => {
  if (pid === undefined) throw new Error('no server is running');
  return pid;
};

export const filesIn = (dataDir: string): string[] => (existsSync(dataDir) ? readdirSync(dataDir) : []);

/** Pids of the servers on this data directory. A worker that was just born still looks like its postmaster. */
export const serversOn = (dataDir: string): number[] => {
  const alike = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandOf(pid).includes(`\0-D\0${dataDir}/postgres\0`));
  // Without a parent it has ended since.
  return alike.filter((pid) => !['', ...alike].includes(parentOf(pid))).map(Number);
};

/** Pids of everything that belongs to it: postmaster, workers (they work in the cluster), watchdog. */
export const processesOf = (dataDir: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .filter((pid) => commandOf(pid).includes(`${dataDir}/postgres`) || workingDirOf(pid).startsWith(`${dataDir}/`))
    .map(Number);

/** Empty when it is gone. */
export const commandOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
};

const parentOf = (pid: string): string => {
  try {
    return /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';
  } catch {
    return '';
  }
};

const workingDirOf = (pid: string): string => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
};

/** The harness of one test file, with a data directory that has been started and stopped. Its hooks stop what a test has started. */
export const openDatabaseHarness = (): { readonly harness: DatabaseHarness; readonly used: string } => {
  const harness = new DatabaseHarness();
  const used = harness.folder('used');
  beforeAll(async () => {
    const postgres = harness.embedded(used);
    const { url } = await postgres.start();
    await ask(url, 'create table kept as select 42 as n');
    await postgres.stop();
  });
  afterEach(async () => {
    await harness.stopAll();
    harness.removeAllBut(used);
  });
  afterAll(() => harness.remove());
  return { harness, used };
};
