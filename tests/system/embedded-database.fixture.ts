// Embedded databases for tests: data directories that are removed when the test ends, and an outside view of the server processes.
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

  /** Returns a fresh path. The folder does not exist yet. */
  folder(name = `d${++this.#folders}`): string {
    return join(this.#root, name);
  }

  /** Creates a data directory with a copy of the cluster in `from`, which is faster than a new cluster. */
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

  /** Removes all folders except `kept` after a test. Removing the folders of the whole file at the end would take the disk minutes. */
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

/** Returns the first value of the first row. */
export const ask = async (url: Secret, query: string): Promise<unknown> => {
  const database = new Database({ url, logger: quiet, connections: 1 });
  try {
    const { rows } = await database.pool.query<Record<string, unknown>>(query);
    return Object.values(rows[0] ?? {})[0];
  } finally {
    await database.close();
  }
};

/** Returns the pid of a running server, and throws otherwise. A default of 0 would make a kill hit the process group of the test. */
export const pidOf = ({ pid }: { readonly pid: number | undefined }): number => {
  if (pid === undefined) throw new Error('no server is running');
  return pid;
};

export const filesIn = (dataDir: string): string[] => (existsSync(dataDir) ? readdirSync(dataDir) : []);

/**
 * Returns the pids of the servers on the data directory. A newborn worker still looks like its postmaster, so children of a listed
 * process are left out.
 */
export const serversOn = (dataDir: string): number[] => {
  const alike = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandOf(pid).includes(`\0-D\0${dataDir}/postgres\0`));
  // A process without a parent has ended meanwhile.
  return alike.filter((pid) => !['', ...alike].includes(parentOf(pid))).map(Number);
};

/** Returns the pids of all processes of the data directory: postmaster, workers (their working directory is the cluster), and watchdog. */
export const processesOf = (dataDir: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .filter((pid) => commandOf(pid).includes(`${dataDir}/postgres`) || workingDirOf(pid).startsWith(`${dataDir}/`))
    .map(Number);

/** Returns the command line of a process, or an empty string if the process has ended. */
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

/**
 * Returns a harness for a test file, and a data directory that has been started and stopped. Hooks stop the databases that a test has
 * started.
 */
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
