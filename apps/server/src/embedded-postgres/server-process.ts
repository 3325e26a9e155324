// A run of the database server, from its launch to its end. Also finds and stops a server that outlived the process that started it.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Clock, isProcessAlive, type Logger } from '@tunnel/runtime';
import { POSTGRES_BOUNDS } from './postgres-files.ts';
import { lastProblem, type Programs, spawnAs } from './programs.ts';

const READY = 'database system is ready to accept connections';
/**
 * Log line of a smart shutdown: the server accepts no new connections and ends when the last connection closes. Our connections never
 * close.
 */
const WAITS_FOR_US = 'received smart shutdown request';
const SERIOUS = /^(FATAL|PANIC|WARNING):/;
/**
 * Messages about a single connection, or about a server that starts or stops. Not worth a warning, because the affected client gets the
 * error.
 */
const ORDINARY = /terminating connection|the database system is|database ".*" does not exist/;

interface ServerProcessOptions {
  readonly programs: Programs;
  readonly args: readonly string[];
  readonly logger: Logger;
  readonly clock: Clock;
  /** Time limit for the start. */
  readonly timeoutMs?: number;
  /** Called with each line of the server's log. */
  readonly onLine?: (line: string) => void;
}

export class ServerProcess {
  readonly pid: number | undefined;
  /** Resolves when the server has ended. Never rejects. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #timeoutMs: number;
  readonly #onLine: (line: string) => void;
  readonly #lines: string[] = [];
  /** Resolves when the server's output has been read completely. */
  readonly #saidAll: Promise<void>;
  #onReady: () => void = () => {};
  #stopping = false;

  constructor({ programs, args, logger, clock, ...more }: ServerProcessOptions) {
    this.#timeoutMs = more.timeoutMs ?? POSTGRES_BOUNDS.START_TIMEOUT_MS;
    this.#onLine = more.onLine ?? (() => {});
    this.#clock = clock;
    this.#logger = logger;
    this.#child = spawnAs(programs, programs.binaries.postgres, args, ['ignore', 'ignore', 'pipe']);
    this.pid = this.#child.pid;
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#lines.push(error.message);
        resolve();
      });
      this.#child.once('exit', () => resolve());
    });
    const { stderr } = this.#child;
    if (stderr === null) this.#saidAll = Promise.resolve();
    else {
      const lines = createInterface({ input: stderr }).on('line', (line) => this.#said(line));
      this.#saidAll = new Promise((resolve) => lines.once('close', () => resolve()));
    }
  }

  /**
   * Resolves when the server accepts connections. Rejects with the server's error message if the server ends early or does not start in
   * time.
   */
  async ready(): Promise<void> {
    const ready = new Promise<'ready'>((resolve) => {
      this.#onReady = () => resolve('ready');
    });
    const ended = this.ended.then(() => 'ended' as const);
    const outcome = await this.#within(Promise.race([ready, ended]), this.#timeoutMs);
    if (outcome === 'ready') return;
    if (outcome === 'late') await this.stop();
    // The exit event can arrive before the last lines of output. The wait is limited, because a child process of the server can keep the
    // output open.
    await this.#within(this.#saidAll, POSTGRES_BOUNDS.LAST_LINES_MS);
    throw new Error(lastProblem(this.#lines.join('\n')) ?? 'PostgreSQL did not start and gave no reason');
  }

  /** Stops the server: `fast` first, `immediate` after 10 s, and with SIGKILL after another 3 s. Resolves when the server has ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#child.kill('SIGINT');
    if ((await this.#within(this.ended, POSTGRES_BOUNDS.FAST_STOP_MS)) !== 'late') return;
    this.#logger.warn({}, 'the embedded database is slow to stop; forcing an immediate stop');
    this.#child.kill('SIGQUIT');
    if ((await this.#within(this.ended, POSTGRES_BOUNDS.IMMEDIATE_STOP_MS)) !== 'late') return;
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  #said(line: string): void {
    if (line.includes(READY)) this.#onReady();
    // A different program has sent SIGTERM. A server without new connections is worse than a server that ends now and is restarted.
    if (line.includes(WAITS_FOR_US) && !this.#stopping) this.#child.kill('SIGINT');
    const short = line.slice(0, POSTGRES_BOUNDS.LOG_LINE_CHARS);
    this.#onLine(short);
    this.#lines.push(short);
    if (this.#lines.length > POSTGRES_BOUNDS.KEPT_LOG_LINES) this.#lines.shift();
    // While stopping, the server reports every closed connection, so these lines are not warnings.
    const serious = SERIOUS.test(short) && !ORDINARY.test(short) && !this.#stopping;
    if (serious) this.#logger.warn({ postgres: short }, 'message from the embedded database');
    else this.#logger.debug({ postgres: short }, 'message from the embedded database');
  }

  async #within<T>(work: Promise<T>, ms: number): Promise<T | 'late'> {
    let give: (late: 'late') => void = () => {};
    const late = new Promise<'late'>((resolve) => {
      give = resolve;
    });
    const timer = this.#clock.setTimeout(() => give('late'), ms);
    try {
      return await Promise.race([work, late]);
    } finally {
      timer.cancel();
    }
  }
}

// Orphans: a database server that outlived the process that started it is found by the pid file in its cluster, and stopped.

export const stopOrphan = async (cluster: string, logger: Logger, clock: Clock): Promise<void> => {
  const pid = pidIn(cluster);
  if (pid === undefined || !isServerOf(cluster, pid)) {
    // The pid may belong to any program by now, and PostgreSQL would refuse to start because of the pid file. PostgreSQL also refuses to
    // start with an empty pid file, as left behind by a server killed between creating and writing the file.
    rmSync(join(cluster, 'postmaster.pid'), { force: true });
    return;
  }
  logger.info({ pid }, 'stopping an embedded database left over from an earlier run');
  const { FAST_STOP_MS, IMMEDIATE_STOP_MS } = POSTGRES_BOUNDS;
  for (const [signal, ms] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
    ['SIGKILL', 1000],
  ] as const) {
    if (!send(pid, signal)) return;
    if (await isGoneWithin(cluster, pid, ms, clock)) return;
  }
};

const pidIn = (cluster: string): number | undefined => {
  try {
    const pid = Number.parseInt(readFileSync(join(cluster, 'postmaster.pid'), 'utf8'), 10);
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
};

/** Returns whether a process is the server of a cluster. The command line of the process must contain the cluster's path. */
const isServerOf = (cluster: string, pid: number): boolean =>
  isProcessAlive(pid) && commandOf(pid).includes(`-D ${cluster} `);

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return psCommandOf(pid);
  }
};

const psCommandOf = (pid: number): string => {
  try {
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return '';
  }
};

const send = (pid: number, signal: NodeJS.Signals): boolean => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
};

const isGoneWithin = async (cluster: string, pid: number, ms: number, clock: Clock): Promise<boolean> => {
  const giveUpAt = clock.monotonic() + ms;
  while (isServerOf(cluster, pid)) {
    if (clock.monotonic() >= giveUpAt) return false;
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, POSTGRES_BOUNDS.POLL_MS));
  }
  return true;
};
