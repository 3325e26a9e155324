// The embedded database: a real PostgreSQL of our own, started on first use, watched while it runs, stopped last.
import { spawn } from 'node:child_process';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger, Secret, Timer } from '@tunnel/runtime';
import { givePassword } from './access.ts';
import { removeSocketLock, writeConnection } from './connection.ts';
import { closeInstallation, type Installation, type InstallationOptions, openInstallation } from './installation.ts';
import { POSTGRES_BOUNDS, postgresFiles } from './postgres-files.ts';
import { ServerProcess, stopOrphan } from './server-process.ts';

export interface EmbeddedPostgresOptions extends InstallationOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** The server ended without being asked to; it is started again. */
  readonly onDied?: () => void;
}

// idle -> starting -> running <-> restarting; stop() leads from each of them over stopping to idle.
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
  /** The start, or the latest start after the server died. */
  #launching: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> = Promise.resolve();

  constructor(options: EmbeddedPostgresOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#clock = options.clock;
  }

  /** The process id of the server, while there is one. */
  get pid(): number | undefined {
    return this.#server?.pid;
  }

  /** Resolves when it answers. Throws a Fault that says why it cannot run here. */
  start(): Promise<{ url: Secret; socketFolder: string }> {
    if (this.#state !== 'idle') return Promise.reject(new Error(`the embedded database is already ${this.#state}`));
    this.#state = 'starting';
    const starting = this.#startUp();
    this.#launching = starting;
    return starting;
  }

  /** Resolves when the server has ended and nothing of it is left but its files. */
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
    // A start that is under way sees that it is not wanted any more; until then it may hold files.
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

  /** Workers of a server that was killed may still hold its memory: then it is tried again for a while. */
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

  async #launch({ programs, args, files, socketFolder, password, url }: Installation): Promise<void> {
    await stopOrphan(files.cluster, this.#logger, this.#clock);
    if (this.#isStopping()) throw new Error('stopped during startup');
    // Not before: it needs the cluster for itself.
    await givePassword(files, programs, password);
    if (this.#isStopping()) throw new Error('stopped during startup');
    removeSocketLock(socketFolder);
    const server = new ServerProcess({ programs, args, logger: this.#logger, clock: this.#clock });
    this.#server = server;
    this.#watchdog?.dismiss();
    this.#watchdog = server.pid === undefined ? undefined : watchOver(server.pid, files.cluster);
    await server.ready();
    if (this.#isStopping()) return;
    writeConnection(files.connection, url, process.pid);
    this.#state = 'running';
    void server.ended.then(() => this.#died(server));
  }

  /** By a call: over an await the state may have changed. */
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

/** Of a server that was killed and whose workers have not noticed yet. */
const LEFTOVERS = /shared memory block|is another postmaster/;

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

// Stops the database server when our process is gone without having done so (kill -9, a crash): a shell that waits for
// the end of a pipe which only our process holds. Without it a killed test run, or a killed server, leaves one behind.

// The pid is believed only while the pid file of the cluster names it: by then it may belong to another program.
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
  /** The server has been stopped by ourselves. */
  dismiss(): void;
}

const watchOver = (serverPid: number, cluster: string): Watchdog => {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'tunnel-database-watchdog', String(serverPid), cluster], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Without a shell there is no watchdog; the next start finds the server by its pid file all the same.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  return { dismiss: () => void shell.kill('SIGKILL') };
};

/** The one line a person reads when the embedded database cannot run here. */
const embeddedFault = (dir: string, reason: string, cause?: unknown): Fault =>
  new Fault('CONFIG_DATABASE_EMBEDDED', { dir, reason }, cause === undefined ? {} : { cause });
