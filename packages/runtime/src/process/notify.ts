// What the service manager is told of this process: ready, reloading, stopping, alive. By the program `systemd-notify`, because Node.js
// cannot send to a Unix datagram socket. Without a manager, or without that program, nothing is told and nothing is missed.
import { type ChildProcess, spawn } from 'node:child_process';
import { type Clock, systemClock, type Timer } from '../clock.ts';

export interface ServiceNotifier {
  ready(): void;
  /** Until the next `ready`. */
  reloading(): void;
  stopping(): void;
  /** Ends the signs of life; settles when what was told has left, or after a moment. */
  close(): Promise<void>;
}

interface NotifierOptions {
  /** What is for us alone is taken out of it: a child that inherits it (PostgreSQL does notify) would speak in our name. */
  readonly env: Record<string, string | undefined>;
  readonly clock?: Clock;
}

const NOTIFY_BOUNDS = {
  /** `systemd-notify` waits until the manager has read it; one that never does must not pile up programs. */
  SEND_MS: 10_000,
  /** Messages that wait for the one under way. The last one says how things are: the oldest goes first. */
  WAITING: 8,
  /** The least time between signs of life, whatever the manager asks for. */
  LIFE_LEAST_MS: 100,
  /** And the most: a timer of Node.js holds no more, and would fire a thousand times a second instead. */
  LIFE_MOST_MS: 2 ** 31 - 1,
  /** What the last words may take at the end. */
  CLOSE_MS: 2000,
} as const;

const SILENT: ServiceNotifier = {
  ready: () => {},
  reloading: () => {},
  stopping: () => {},
  close: () => Promise.resolve(),
};

/** Once a process: what it is told by is taken out of the environment. */
export const createServiceNotifier = ({ env, clock = systemClock }: NotifierOptions): ServiceNotifier => {
  const socket = env['NOTIFY_SOCKET'] ?? '';
  const lifeMs = lifeIntervalMs(env);
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  return socket === '' ? SILENT : new SystemdNotifier({ ...env, NOTIFY_SOCKET: socket }, lifeMs, clock);
};

/** Half of what the manager waits for; null: it does not watch, or watches another process. A shell or npm between us and it is not another. */
const lifeIntervalMs = (env: Readonly<Record<string, string | undefined>>): number | null => {
  const { WATCHDOG_USEC: usec = '', WATCHDOG_PID: pid = '' } = env;
  if (!/^[1-9]\d{0,15}$/.test(usec)) return null;
  if (pid !== '' && pid !== String(process.pid) && pid !== String(process.ppid)) return null;
  return Math.min(NOTIFY_BOUNDS.LIFE_MOST_MS, Math.max(NOTIFY_BOUNDS.LIFE_LEAST_MS, Number(usec) / 2000));
};

class SystemdNotifier implements ServiceNotifier {
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #clock: Clock;
  readonly #life: Timer | null;
  readonly #waiting: (readonly string[])[] = [];
  readonly #onIdle: (() => void)[] = [];
  #current: ChildProcess | null = null;
  #isAbsent = false;

  constructor(env: Readonly<Record<string, string | undefined>>, lifeMs: number | null, clock: Clock) {
    this.#env = env;
    this.#clock = clock;
    // By a timer of this event loop: one that no longer turns gives no sign of life.
    this.#life = lifeMs === null ? null : clock.setInterval(() => this.#sayAlive(), lifeMs);
  }

  ready(): void {
    this.#tell(['READY=1']);
  }

  /** With the time, without which newer managers take an answer for one to an earlier reload. */
  reloading(): void {
    this.#tell(['RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`]);
  }

  stopping(): void {
    this.#tell(['STOPPING=1']);
  }

  async close(): Promise<void> {
    this.#life?.cancel();
    if (this.#current === null) return;
    let late: Timer | undefined;
    await new Promise<void>((resolve) => {
      this.#onIdle.push(resolve);
      late = this.#clock.setTimeout(resolve, NOTIFY_BOUNDS.CLOSE_MS);
    });
    late?.cancel();
  }

  /** Whatever waits is a sign of life too. */
  #sayAlive(): void {
    if (this.#waiting.length === 0) this.#tell(['WATCHDOG=1']);
  }

  /** One at a time: two programs at once may be read in the other order. */
  #tell(message: readonly string[]): void {
    if (this.#isAbsent) return;
    this.#waiting.push(message);
    if (this.#waiting.length > NOTIFY_BOUNDS.WAITING) this.#waiting.shift();
    if (this.#current === null) this.#sendNext();
  }

  #sendNext(): void {
    const message = this.#isAbsent ? undefined : this.#waiting.shift();
    if (message === undefined) {
      this.#waiting.length = 0;
      for (const resolve of this.#onIdle.splice(0)) resolve();
      return;
    }
    const child = startNotify(message, this.#env);
    if (child === null) {
      this.#sendNext();
      return;
    }
    this.#current = child;
    const tooLong = this.#clock.setTimeout(() => child.kill('SIGKILL'), NOTIFY_BOUNDS.SEND_MS);
    const done = (): void => {
      if (this.#current !== child) return;
      tooLong.cancel();
      this.#current = null;
      this.#sendNext();
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      // Too many processes may pass; a program that is not there does not come.
      this.#isAbsent ||= error.code === 'ENOENT' || error.code === 'EACCES';
      done();
    });
    child.once('exit', done);
  }
}

/** null: it did not start, and there is no event for that: Node.js throws what is not a usual end of a start (no memory, for one). */
const startNotify = (
  message: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ChildProcess | null => {
  try {
    return spawn('systemd-notify', message, { env, stdio: 'ignore' });
  } catch {
    return null;
  }
};
