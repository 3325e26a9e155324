// The archiver: moves finished segments of the database's log from the spool to the folder of the archive, in order. A failing archive never
// stops the server: the archiver retries, and if too much log is waiting, it switches archiving off until the backlog is archived.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { TokenBucket } from '@tunnel/rules/rate';
import { type Clock, type Logger, type Timer, writeAtomic } from '@tunnel/runtime';
import { ARCHIVED, GAP, type Segment, segmentName } from '../wal-names.rules.ts';
import { isBeforeArchive, retryDelayMs } from './archive.rules.ts';
import { archiveFile, archiveRate } from './archive-file.ts';
import type { Spool } from './spool.ts';

export const ARCHIVER_BOUNDS = {
  /** Interval of looking for files in the spool. */
  POLL_MS: 1000,
  /** Interval of measuring the backlog. */
  WATCH_MS: 5000,
  /** Interval between two warnings about the same lasting failure. */
  WARN_AGAIN_MS: 10 * 60_000,
} as const;

export interface ArchiverOptions {
  readonly spool: Spool;
  /** Folder of the archive. */
  readonly walDir: string;
  /** Bytes of log that may wait for the archive. */
  readonly maxBytes: number;
  /** Ends the current segment of the database's log, and returns the last segment that is complete now. */
  readonly switchLog: () => Promise<Segment>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called after every failed attempt to archive a file. */
  readonly onFailure: () => void;
  /** Called when archiving has been switched on. Log from before that moment may be missing in the archive. */
  readonly onSwitchedOn: () => void;
}

export class Archiver {
  readonly #options: ArchiverOptions;
  readonly #rate: TokenBucket = archiveRate();
  readonly #aborted = new AbortController();
  #isStopped = false;
  #isOn = true;
  /** The last segment to leave out when archiving is switched on. Null while archiving is on, or while a backlog is archived. */
  #leavesOut: Segment | null = null;
  #failures = 0;
  #warned = { reason: '', at: Number.NEGATIVE_INFINITY };
  #working: Promise<void> = Promise.resolve();
  #work: Timer | undefined;
  #watch: Timer | undefined;

  constructor(options: ArchiverOptions) {
    this.#options = options;
  }

  /** Whether PostgreSQL hands finished segments over. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** Starts archiving. The database is running. */
  async start(): Promise<void> {
    this.#isOn = await this.#options.spool.isOn();
    this.#workIn(0);
    this.#watchIn(0);
  }

  /**
   * Archives the files that are in the spool now, and ends. Called after the database has stopped, which hands over its last segment. After
   * `flushMs`, the rest stays in the spool for the next start.
   */
  async stop(flushMs: number): Promise<void> {
    const { clock, logger } = this.#options;
    this.#isStopped = true;
    this.#watch?.cancel();
    this.#work?.cancel();
    const flushed = this.#working.then(() => this.#archiveAll());
    const outcome = await new Promise<'done' | 'failed' | 'late'>((resolve) => {
      const late = clock.setTimeout(() => resolve('late'), flushMs);
      flushed.then(
        () => resolve('done'),
        () => resolve('failed'),
      );
      void flushed.finally(() => late.cancel()).catch(() => {});
    });
    this.#aborted.abort();
    if (outcome !== 'done') logger.warn({}, 'not all log is archived; the rest is archived after the next start');
  }

  #workIn(ms: number): void {
    if (this.#isStopped) return;
    this.#work = this.#options.clock.setTimeout(() => {
      this.#working = this.#pass().then((nextMs) => this.#workIn(nextMs));
    }, ms);
  }

  /** Archives the spool. Resolves with the time until the next pass. Never rejects. */
  async #pass(): Promise<number> {
    try {
      await this.#archiveAll();
      // A spool that was missing is switched off when it is created again.
      this.#isOn = await this.#options.spool.isOn();
    } catch (error) {
      this.#failed(error);
      return retryDelayMs(this.#failures);
    }
    if (!this.#isOn) await this.#switchOn();
    return ARCHIVER_BOUNDS.POLL_MS;
  }

  async #archiveAll(): Promise<void> {
    const { spool, walDir, clock, logger } = this.#options;
    const { signal } = this.#aborted;
    const files = await spool.files();
    if (files.length === 0) return;
    await refuseMissing(walDir);
    const beginsAfter = await spool.beginsAfter();
    for (const { name, file } of files) {
      if (!isBeforeArchive(file, beginsAfter)) {
        await archiveFile(spool.pathOf(name), join(walDir, name + ARCHIVED), this.#rate, { clock, signal });
      }
      await spool.remove(name);
    }
    if (this.#failures > 0) logger.info({ files: files.length }, 'the log of the database is archived again');
    this.#failures = 0;
    this.#warned = { reason: '', at: Number.NEGATIVE_INFINITY };
  }

  #failed(error: unknown): void {
    if (this.#aborted.signal.aborted) return;
    const { clock, logger, onFailure } = this.#options;
    this.#failures += 1;
    onFailure();
    const reason = error instanceof Error ? error.message : String(error);
    const now = clock.monotonic();
    if (reason === this.#warned.reason && now - this.#warned.at < ARCHIVER_BOUNDS.WARN_AGAIN_MS) return;
    this.#warned = { reason, at: now };
    logger.warn({ reason, failures: this.#failures }, 'cannot archive the log of the database; retrying');
  }

  /**
   * Switches archiving on, once the backlog is archived. The current segment may contain log that PostgreSQL wrote in a way that cannot be
   * restored, so the segment is ended and left out of the archive. The missing number ends restores there, and the mark in the archive tells
   * `backup verify` that nothing was lost.
   */
  async #switchOn(): Promise<void> {
    const { spool, walDir, switchLog, logger, onSwitchedOn } = this.#options;
    try {
      this.#leavesOut ??= await switchLog();
      // Until PostgreSQL has passed over these segments, switching on would hand them over.
      if (await spool.awaits(this.#leavesOut)) return;
      const mark = join(walDir, segmentName(this.#leavesOut) + GAP);
      await writeAtomic(mark, '', { flush: true, soleWriter: true });
      await spool.switchOn(this.#leavesOut);
    } catch (error) {
      // The database is restarting, or its disk is full. The next pass tries again.
      logger.debug({ err: error }, 'archiving cannot be switched on yet');
      return;
    }
    this.#leavesOut = null;
    this.#isOn = true;
    logger.info({}, 'archiving of the database log is on');
    onSwitchedOn();
  }

  #watchIn(ms: number): void {
    if (this.#isStopped) return;
    this.#watch = this.#options.clock.setTimeout(() => {
      // A separate loop, because a write to a network disk that does not respond can block the other loop for hours.
      void this.#limitBacklog().then(() => this.#watchIn(ARCHIVER_BOUNDS.WATCH_MS));
    }, ms);
  }

  async #limitBacklog(): Promise<void> {
    const { spool, maxBytes, logger } = this.#options;
    if (!this.#isOn) return;
    try {
      const bytes = await spool.backlog();
      if (bytes <= maxBytes || !this.#isOn) return;
      await spool.switchOff();
      this.#isOn = false;
      this.#leavesOut = null;
      logger.error(
        { bytes, limit: maxBytes },
        'ARCHIVING IS SWITCHED OFF: too much log is waiting (backup.wal_max_bytes). Later changes cannot be restored until the waiting log is archived and a new backup is finished',
      );
    } catch (error) {
      // A missing spool is reported by the other loop.
      logger.debug({ err: error }, 'cannot measure the log that waits for the archive');
    }
  }
}

/**
 * Throws an error if the folder of the archive is missing. Creating the folder here could fill the disk of the server, because the disk of
 * the archive may only be unmounted.
 */
const refuseMissing = async (walDir: string): Promise<void> => {
  const isThere = await stat(walDir).then(
    (found) => found.isDirectory(),
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
  if (!isThere) throw new Error(`${walDir} is missing: mount its disk, or restart the server to create the folder`);
};
