// The embedded database: a separate PostgreSQL server, started on first use, restarted after a crash, and stopped last.
import { spawn } from 'node:child_process';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger, Secret, Timer } from '@tunnel/runtime';
import { givePassword, grantBackups } from './access.ts';
import { removeSocketLock, writeConnection } from './connection.ts';
import { closeInstallation, type Installation, type InstallationOptions, openInstallation } from './installation.ts';
import { prepareLogMode } from './log-mode.ts';
import { POSTGRES_BOUNDS, postgresFiles } from './postgres-files.ts';
import { ServerProcess, stopOrphan } from './server-process.ts';

export interface EmbeddedPostgresOptions extends InstallationOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called when the database server ended unexpectedly. The server is restarted automatically. */
  readonly onDied?: () => void;
  /** Recovers a restored cluster. Password and permissions are set at the next start, because they need a cluster without a recovery. */
  readonly recovery?: Recovery;
}

export interface Recovery {
  /** Time limit for the recovery, which can replay days of log. */
  readonly timeoutMs: number;
  /** Called with each line of PostgreSQL's log. */
  readonly onLine: (line: string) => void;
}

// States: idle -> starting -> running <-> restarting. From each of them, stop() leads over stopping to idle.
type State = 'idle' | 'starting' | 'running' | 'restarting' | 'stopping';

export class EmbeddedPostgres {
  readonly #options: EmbeddedPostgresOptions;
  readonly #logger: Logger;
  readonly #clock: Clock;
  #state: State = 'idle';
  #installation: Installation | undefined;
  #server: ServerProcess | undefined;
  #watchdog: Watchdog | undefined;
  #restart: Timer | undefined;
  /** The first start, or the latest restart after a crash of the server. */
  #launching: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> = Promise.resolve();

  constructor(options: EmbeddedPostgresOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#clock = options.clock;
  }

  /** Process ID of the database server. Undefined while the server is not running. */
  get pid(): number | undefined {
    return this.#server?.pid;
  }

  /**
   * Starts the database. Resolves when the server accepts connections. Throws a Fault with the reason if PostgreSQL cannot run on this
   * machine.
   */
  start(): Promise<{ url: Secret; socketFolder: string }> {
    if (this.#state !== 'idle') return Promise.reject(new Error(`the embedded database is already ${this.#state}`));
    this.#state = 'starting';
    const starting = this.#startUp();
    this.#launching = starting;
    return starting;
  }

  /** Stops the database. Resolves when the server has ended and only its files are left. */
  stop(): Promise<void> {
    if (this.#state === 'idle') return Promise.resolve();
    if (this.#state !== 'stopping') {
      this.#state = 'stopping';
      this.#stopping = this.#shutDown();
    }
    return this.#stopping;
  }

  async #startUp(): Promise<{ url: Secret; socketFolder: string }> {
    const { dataDir } = this.#options;
    try {
      const installation = await openInstallation(this.#options);
      this.#installation = installation;
      await this.#launchPatiently(installation);
      return { url: installation.url, socketFolder: installation.socketFolder };
    } catch (error) {
      if (!this.#isStopping()) await this.#cleanUp();
      throw error instanceof Fault ? error : embeddedFault(postgresFiles(dataDir).cluster, reasonOf(error), error);
    }
  }

  async #shutDown(): Promise<void> {
    this.#restart?.cancel();
    await this.#server?.stop();
    // A start in progress notices the stop request. Until then, the start may hold files open.
    await this.#launching.catch(() => {});
    await this.#cleanUp();
  }

  async #cleanUp(): Promise<void> {
    await this.#server?.stop();
    this.#watchdog?.dismiss();
    if (this.#installation !== undefined) closeInstallation(this.#installation);
    this.#server = undefined;
    this.#watchdog = undefined;
    this.#installation = undefined;
    this.#state = 'idle';
  }

  /**
   * Starts the server, with retries for 15 s. Worker processes of a killed server can hold its shared memory for a moment, which makes a
   * start fail.
   */
  async #launchPatiently(installation: Installation): Promise<void> {
    const giveUpAt = this.#clock.monotonic() + POSTGRES_BOUNDS.LEFTOVERS_MS;
    for (;;) {
      try {
        return await this.#launch(installation);
      } catch (error) {
        const passing = LEFTOVERS.test(reasonOf(error)) && this.#clock.monotonic() < giveUpAt;
        if (!passing || this.#state !== 'starting') throw error;
      }
      await new Promise<void>((resolve) => void this.#clock.setTimeout(resolve, POSTGRES_BOUNDS.RESTART_FIRST_MS));
    }
  }

  async #launch({ programs, args, files, socketFolder, password, log, url }: Installation): Promise<void> {
    await stopOrphan(files.cluster, this.#logger, this.#clock);
    if (this.#isStopping()) throw new Error('stopped during startup');
    prepareLogMode(files, log, programs.user);
    const { recovery } = this.#options;
    // The password and the permissions are set only now, because single-user mode needs exclusive access to the cluster.
    if (recovery === undefined) {
      await givePassword(files, programs, password, log);
      await grantBackups(files, programs, log);
    }
    if (this.#isStopping()) throw new Error('stopped during startup');
    removeSocketLock(socketFolder);
    const server = new ServerProcess({ programs, args, logger: this.#logger, clock: this.#clock, ...recovery });
    this.#server = server;
    this.#watchdog?.dismiss();
    this.#watchdog = server.pid === undefined ? undefined : watchOver(server.pid, files.cluster);
    await server.ready();
    if (this.#isStopping()) return;
    writeConnection(files.connection, url, process.pid);
    this.#state = 'running';
    void server.ended.then(() => this.#died(server));
  }

  /** Returns whether the database is stopping. A method, because TypeScript would assume that the state is unchanged after an await. */
  #isStopping(): boolean {
    return this.#state === 'stopping';
  }

  #died(server: ServerProcess): void {
    if (this.#state !== 'running' || this.#server !== server) return;
    this.#logger.warn({ pid: server.pid }, 'the embedded database stopped unexpectedly; restarting');
    this.#state = 'restarting';
    this.#options.onDied?.();
    this.#restartIn(POSTGRES_BOUNDS.RESTART_FIRST_MS);
  }

  #restartIn(delayMs: number): void {
    const installation = this.#installation;
    if (this.#state !== 'restarting' || installation === undefined) return;
    this.#restart = this.#clock.setTimeout(() => {
      this.#launching = this.#launch(installation).then(
        () => this.#logger.info({ pid: this.pid }, 'the embedded database is running again'),
        (error: unknown) => {
          this.#logger.warn({ reason: reasonOf(error) }, 'the embedded database did not start; retrying');
          this.#restartIn(Math.min(delayMs * 2, POSTGRES_BOUNDS.RESTART_LONGEST_MS));
        },
      );
    }, delayMs);
  }
}

/** Error messages caused by worker processes that have not noticed yet that their server was killed. */
const LEFTOVERS = /shared memory block|is another postmaster/;

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

// The watchdog stops the database server if our process ends without stopping it (kill -9, a crash). The watchdog is a shell that waits
// for the end of a pipe held only by our process. Without the watchdog, a killed test run or a killed server would leave a database
// server behind.

// The script trusts the pid only while the cluster's pid file contains it, because the pid may belong to a different program by then.
const SCRIPT = `
read -r _
is_there() { [ "$(head -n 1 "$2/postmaster.pid" 2>/dev/null)" = "$1" ] && kill -0 "$1" 2>/dev/null; }
is_there "$1" "$2" || exit 0
kill -INT "$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do
  sleep 1
  is_there "$1" "$2" || exit 0
done
kill -QUIT "$1"
`;

interface Watchdog {
  /** Ends the watchdog after our process has stopped the server. */
  dismiss(): void;
}

const watchOver = (serverPid: number, cluster: string): Watchdog => {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'tunnel-database-watchdog', String(serverPid), cluster], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Without a shell there is no watchdog. The next start then finds the server by its pid file.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  return { dismiss: () => void shell.kill('SIGKILL') };
};

/** Creates the fault with a one-line message for an embedded database that cannot run on this machine. */
const embeddedFault = (dir: string, reason: string, cause?: unknown): Fault =>
  new Fault('CONFIG_DATABASE_EMBEDDED', { dir, reason }, cause === undefined ? {} : { cause });
