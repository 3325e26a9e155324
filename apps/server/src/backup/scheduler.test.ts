import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { createLogger } from '@tunnel/runtime';
import { eventually, FastClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backupName } from './plan.rules.ts';
import { Scheduler, type SchedulerOptions } from './scheduler.ts';

const HOUR = 3_600_000;
const logger = createLogger({ level: 'silent', format: 'json' });

/** A scheduler with a folder of empty backups, whose names tell their times. */
class Trial {
  /** A minute takes a hundredth of a second. */
  readonly clock = new FastClock(6000);
  readonly base: string;
  readonly finished = new Map<string, number>();
  created = 0;
  running = 0;
  mostRunning = 0;
  retained = 0;
  changes = 0;
  failure: Error | null = null;
  isReady = true;
  hasGap = false;
  hold: Promise<void> = Promise.resolve();
  readonly #made: Scheduler[] = [];

  constructor(folder: string) {
    this.base = join(folder, 'base');
    mkdirSync(this.base);
  }

  add(at: number): string {
    const name = backupName(at, new Set(this.finished.keys()));
    mkdirSync(join(this.base, name));
    this.finished.set(name, at);
    return name;
  }

  async start(more: Partial<SchedulerOptions> = {}): Promise<Scheduler> {
    const scheduler = new Scheduler({
      everyMs: HOUR,
      base: this.base,
      readState: async () => ({ finishedAt: [...this.finished.values()], hasGap: this.hasGap }),
      isReady: () => this.isReady,
      createBackup: (signal) => this.#create(signal),
      applyRetention: async () => {
        this.retained += 1;
      },
      clock: this.clock,
      logger,
      onChange: () => {
        this.changes += 1;
      },
      ...more,
    });
    this.#made.push(scheduler);
    await scheduler.start();
    return scheduler;
  }

  async close(): Promise<void> {
    for (const scheduler of this.#made) await scheduler.stop();
  }

  async #create(signal: AbortSignal): Promise<{ name: string; bytes: number }> {
    this.created += 1;
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    try {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      await Promise.race([this.hold, aborted]);
      if (this.failure !== null) throw this.failure;
      this.hasGap = false;
      return { name: this.add(this.clock.now()), bytes: 1 };
    } finally {
      this.running -= 1;
    }
  }
}

let directory: TemporaryDirectory;
let trial: Trial;
beforeEach(async () => {
  directory = await temporaryDirectory();
  trial = new Trial(directory.path);
});
afterEach(async () => {
  await trial.close();
  await directory.close();
});

const looks = (count: number): Promise<void> =>
  new Promise((resolve) => void trial.clock.setTimeout(resolve, count * 30_000));

describe('scheduled backups', () => {
  it('begin at once in an empty folder, then follow the interval, and delete old backups after each', async () => {
    const scheduler = await trial.start();
    expect(scheduler.lastAt).toBeNull();
    await eventually(() => expect(trial.created).toBe(2));
    const [first = 0, second = 0] = [...trial.finished.values()];
    expect(second - first).toBeGreaterThanOrEqual(HOUR);
    await eventually(() => expect(trial.retained).toBeGreaterThanOrEqual(2));
    expect(scheduler.lastAt).toBe(second);
    expect([scheduler.failures, trial.mostRunning]).toEqual([0, 1]);
  });

  it('count backups by command and of earlier runs of the server', async () => {
    trial.add(trial.clock.now() - HOUR / 2);
    const scheduler = await trial.start();
    await looks(10);
    expect(trial.created).toBe(0);
    const at = trial.clock.now();
    trial.add(at);
    await eventually(() => expect(scheduler.lastAt).toBe(at));
    await looks(70);
    expect(trial.created).toBe(0);
  });

  it('are retried after a failure, with the failures counted, and do not count a backup by command as a failure', async () => {
    trial.failure = new Error('the disk is full');
    const scheduler = await trial.start();
    await eventually(() => expect(scheduler.failures).toBeGreaterThanOrEqual(3));
    await looks(20);
    // Pauses of one, two, four … minutes: a handful of attempts in the time of many looks.
    const minutes = trial.clock.monotonic() / 60_000;
    expect(scheduler.failures).toBeLessThanOrEqual(2 + Math.log2(1 + minutes));
    trial.failure = null;
    await eventually(() => expect(scheduler.lastAt).not.toBeNull());
    const { failures } = scheduler;
    trial.failure = new Fault('BACKUP_RUNNING', { pid: 1 });
    trial.finished.clear();
    rmSync(trial.base, { recursive: true });
    mkdirSync(trial.base);
    const { created } = trial;
    await eventually(() => expect(trial.created).toBeGreaterThan(created + 1));
    expect(scheduler.failures).toBe(failures);
  });

  it('wait for the archive of the log', async () => {
    trial.isReady = false;
    await trial.start();
    await looks(4);
    expect(trial.created).toBe(0);
    trial.isReady = true;
    await eventually(() => expect(trial.created).toBe(1));
  });

  it('follow a gap in the log at once, also soon after another backup', async () => {
    // Slow enough that a busy machine does not look like a pause.
    const clock = new FastClock(600);
    const scheduler = await trial.start({ clock });
    await eventually(() => expect(scheduler.lastAt).not.toBeNull());
    const gapAt = clock.monotonic();
    trial.hasGap = true;
    scheduler.lookAgain();
    await eventually(() => expect(trial.created).toBe(2));
    expect(clock.monotonic() - gapAt).toBeLessThan(9 * 60_000);
  });

  it('follow repeated gaps, as of a disk that is full again and again, at most every ten minutes', async () => {
    const scheduler = await trial.start({ everyMs: 1000 * HOUR });
    const begunAt = trial.clock.monotonic();
    while (trial.created < 6) {
      trial.hasGap = true;
      scheduler.lookAgain();
      await looks(1);
    }
    // The first backup, the backup after the first gap, and four more.
    expect(trial.clock.monotonic() - begunAt).toBeGreaterThanOrEqual(40 * 60_000);
  });

  it('do not prevent the stop of the server, even if their disk does not respond', async () => {
    let isBegun = false;
    const createBackup = (): Promise<never> => {
      isBegun = true;
      return new Promise(() => {});
    };
    const scheduler = await trial.start({ createBackup });
    await eventually(() => expect(isBegun).toBe(true));
    await scheduler.stop();
  });

  it('are aborted when the server stops, and are no failure then', async () => {
    trial.hold = new Promise(() => {});
    const scheduler = await trial.start();
    await eventually(() => expect(trial.running).toBe(1));
    await scheduler.stop();
    expect([trial.running, scheduler.failures, trial.finished.size]).toEqual([0, 0, 0]);
  });

  it('are off with an interval of 0, but old backups are still deleted', async () => {
    await trial.start({ everyMs: null });
    await eventually(() => expect(trial.retained).toBe(1));
    await looks(5);
    expect(trial.created).toBe(0);
  });
});
