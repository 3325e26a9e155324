// Notifies the service manager: ready, reloading, stopping, alive. Uses the program `systemd-notify`, because Node.js cannot send to a Unix
// datagram socket. Does nothing without a service manager or without the program.
import { type ChildProcess, spawn } from 'node:child_process';
import { type Clock, systemClock, type Timer } from '../clock.ts';

export interface ServiceNotifier {
  ready(): void;
  /** Announces to systemd that the service reloads, in effect until the next `ready`. */
  reloading(): void;
  stopping(): void;
  /** Stops the watchdog messages. Resolves when all messages are sent, or after a short time. */
  close(): Promise<void>;
}

interface NotifierOptions {
  /** The notify variables are removed, because a child that inherits them (such as PostgreSQL) would send notifications for this process. */
  readonly env: Record<string, string | undefined>;
  readonly clock?: Clock;
}

const NOTIFY_BOUNDS = {
  /** Time limit of `systemd-notify`, which waits for the manager, so that programs do not pile up. */
  SEND_MS: 10_000,
  /** Maximum waiting messages. The oldest is dropped first, because the last message has the current state. */
  WAITING: 8,
  /** Minimum interval of systemd watchdog messages. */
  LIFE_LEAST_MS: 100,
  /** Maximum interval of systemd watchdog messages: a longer Node.js timer would fire every millisecond. */
  LIFE_MOST_MS: 2 ** 31 - 1,
  /** Time limit for sending the last messages to systemd at the end. */
  CLOSE_MS: 2000,
} as const;

const SILENT: ServiceNotifier = {
  ready: () => {},
  reloading: () => {},
  stopping: () => {},
  close: () => Promise.resolve(),
};

/** Creates the notifier for systemd. Call once per process, because the variables are removed from the environment. */
export const createServiceNotifier = ({ env, clock = systemClock }: NotifierOptions): ServiceNotifier => {
  const socket = env['NOTIFY_SOCKET'] ?? '';
  const lifeMs = lifeIntervalMs(env);
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  return socket === '' ? SILENT : new SystemdNotifier({ ...env, NOTIFY_SOCKET: socket }, lifeMs, clock);
};

/** Half of the watchdog timeout, or null if the manager does not watch this process. The pid may be that of the parent: a shell or npm. */
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
    // A timer of this event loop, so that a blocked loop sends no message.
    this.#life = lifeMs === null ? null : clock.setInterval(() => this.#sayAlive(), lifeMs);
  }

  ready(): void {
    this.#tell(['READY=1']);
  }

  /** Includes the time, because newer managers otherwise take the message for an earlier reload. */
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

  /** Tells the systemd watchdog that the process is alive. A waiting message already counts as a sign of life. */
  #sayAlive(): void {
    if (this.#waiting.length === 0) this.#tell(['WATCHDOG=1']);
  }

  /** One message at a time, because two concurrent programs could be read in the wrong order. */
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
      // A lack of processes may be temporary, but a missing program stays missing.
      this.#isAbsent ||= error.code === 'ENOENT' || error.code === 'EACCES';
      done();
    });
    child.once('exit', done);
  }
}

/** Returns null if the program could not be started without an event: Node.js throws in unusual cases, such as no memory. */
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
