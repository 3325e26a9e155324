// Takes scheduled backups, one at a time, and deletes old ones. What is due follows from the folder of the backups, so backups by command
// and restarts of the server count as well.
import { readdir } from 'node:fs/promises';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { backupDue, type DueReason, lastFinished } from './schedule.rules.ts';

const SCHEDULER_BOUNDS = {
  /** Interval of looking at the folder. */
  LOOK_MS: 30_000,
  /** Interval of looking while a due backup waits for the archive of the log to begin. */
  WAIT_MS: 1000,
  /** Interval of deleting old backups, which can also come from a command. */
  RETENTION_MS: 3_600_000,
  /** How long a stop waits for a running backup. A disk that does not respond must not prevent the stop of the server. */
  STOP_MS: 10_000,
} as const;

/** The state of the folder that decides whether a backup is due. */
export interface FolderState {
  readonly finishedAt: readonly number[];
  readonly hasGap: boolean;
}

export interface SchedulerOptions {
  /** Time between two backups. Null if backups are taken only by command. */
  readonly everyMs: number | null;
  /** Folder with the finished backups. */
  readonly base: string;
  readonly readState: () => Promise<FolderState>;
  /** Whether a backup can begin. A backup before the archive of the log begins could not be restored to a later moment. */
  readonly isReady: () => boolean;
  readonly createBackup: (signal: AbortSignal) => Promise<{ readonly name: string; readonly bytes: number }>;
  readonly applyRetention: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when the figures have changed. */
  readonly onChange: () => void;
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #aborted = new AbortController();
  #state: FolderState = { finishedAt: [], hasGap: false };
  /** Names in the folder when the state was read. */
  #seen = '';
  #isStale = true;
  #failures = 0;
  #totalFailures = 0;
  #failedAt = 0;
  #gapBackedUpAt = Number.NEGATIVE_INFINITY;
  #retainedAt = Number.NEGATIVE_INFINITY;
  #work: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /** Time at which the newest backup was finished. Null if there is none. */
  get lastAt(): number | null {
    return lastFinished(this.#state.finishedAt, this.#options.clock.now());
  }

  /** Number of failed backups since the server started. */
  get failures(): number {
    return this.#totalFailures;
  }

  /** Reads the folder, and begins the schedule. Resolves before the first backup. */
  async start(): Promise<void> {
    if (this.#aborted.signal.aborted) return;
    await this.#look();
    this.#nextIn(0);
  }

  /** Ends the schedule. A running backup is aborted and leaves nothing behind. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#aborted.abort();
    await new Promise<void>((resolve) => {
      const late = this.#options.clock.setTimeout(resolve, SCHEDULER_BOUNDS.STOP_MS);
      void this.#work.finally(() => {
        late.cancel();
        resolve();
      });
    });
  }

  /** Reads the folder again at the next look, because the archive of the log has changed. */
  lookAgain(): void {
    this.#isStale = true;
  }

  #nextIn(ms: number): void {
    if (this.#aborted.signal.aborted) return;
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#work = this.#run().then((nextMs) => this.#nextIn(nextMs));
    }, ms);
  }

  /** Does what is due. Resolves with the time until the next look. Never rejects. */
  async #run(): Promise<number> {
    const { isReady, clock } = this.#options;
    await this.#look();
    const reason = this.#due();
    if (reason !== null && !isReady()) return SCHEDULER_BOUNDS.WAIT_MS;
    if (reason !== null) await this.#backUp(reason);
    if (clock.monotonic() - this.#retainedAt >= SCHEDULER_BOUNDS.RETENTION_MS) await this.#retain();
    return SCHEDULER_BOUNDS.LOOK_MS;
  }

  #due(): DueReason | null {
    const { everyMs, clock } = this.#options;
    const now = clock.monotonic();
    const since = { sinceFailureMs: now - this.#failedAt, sinceGapBackupMs: now - this.#gapBackedUpAt };
    return backupDue({ ...this.#state, ...since, everyMs, failures: this.#failures }, clock.now());
  }

  /** Reads the state of the folder if backups have come or gone. Keeps the earlier state if the folder cannot be read. */
  async #look(): Promise<void> {
    const { base, readState, logger, onChange } = this.#options;
    try {
      const names = (await readdir(base)).sort().join(' ');
      if (names === this.#seen && !this.#isStale) return;
      this.#isStale = false;
      this.#state = await readState();
      this.#seen = names;
      onChange();
    } catch (error) {
      this.#isStale = true;
      logger.debug({ err: error }, 'cannot read the folder of the backups');
    }
  }

  async #backUp(reason: DueReason): Promise<void> {
    const { createBackup, clock, logger, onChange } = this.#options;
    const startedAt = clock.monotonic();
    try {
      const { name, bytes } = await createBackup(this.#aborted.signal);
      this.#failures = 0;
      if (reason === 'gap') this.#gapBackedUpAt = clock.monotonic();
      logger.info({ name, bytes, seconds: Math.round((clock.monotonic() - startedAt) / 1000) }, 'a backup is finished');
      this.lookAgain();
      await this.#look();
      await this.#retain();
    } catch (error) {
      // A backup by command is running, and will be in the folder at the next look.
      const isBusy = error instanceof Fault && error.code === 'BACKUP_RUNNING';
      if (this.#aborted.signal.aborted || isBusy) return;
      this.#failures += 1;
      this.#totalFailures += 1;
      this.#failedAt = clock.monotonic();
      const message = error instanceof Error ? error.message : String(error);
      logger.error({ reason: message, due: reason, failures: this.#failures }, 'a backup failed; retrying later');
      onChange();
    }
  }

  async #retain(): Promise<void> {
    const { applyRetention, clock, logger } = this.#options;
    this.#retainedAt = clock.monotonic();
    try {
      await applyRetention();
    } catch (error) {
      logger.warn({ reason: error instanceof Error ? error.message : String(error) }, 'cannot delete old backups');
    }
  }
}
