// Backups of a server with an embedded database: the archive of the log and the schedule, for the process that holds the database. The code
// that takes a backup is loaded when the first backup is due.
import type { ServerConfig } from '@tunnel/config/server';
import type { BackupFigures } from '@tunnel/edge';
import type { Clock, Logger, Secret } from '@tunnel/runtime';
import type { LogMode } from '../embedded-postgres/log-mode.ts';
import { postgresFiles } from '../embedded-postgres/postgres-files.ts';
import { Archiver } from './archive/archiver.ts';
import { Spool } from './archive/spool.ts';
import { type Connect, connectTo } from './connect.ts';
import { applyRetention } from './retention.ts';
import { backupLine } from './schedule.rules.ts';
import { type FolderState, Scheduler } from './scheduler.ts';
import { type BackupFolders, backupFolders, isOnSameDisk, logModeOf, makeBackupFolders } from './settings.ts';
import { parseLsn, type Segment, segmentBefore } from './wal-names.rules.ts';

const HOUR_MS = 3_600_000;
/** How long a scheduled backup waits for the archive of the log to begin. A broken archive must not prevent backups forever. */
const ARCHIVE_WAIT_MS = 120_000;
/** Time to archive the last segments after the database has stopped. The rest is archived after the next start. */
const FLUSH_MS = 5000;

export interface BackupsOptions {
  readonly settings: ServerConfig['backup'];
  readonly dataDir: string;
  readonly version: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when the figures have changed. */
  readonly onFigures: (figures: BackupFigures) => void;
}

export class Backups {
  readonly #options: BackupsOptions;
  readonly #folders: BackupFolders;
  #archiver: Archiver | null = null;
  #scheduler: Scheduler | null = null;
  #archiveFailures = 0;
  #startedAt = 0;
  /** Whether archiving was switched on, and no segment has been archived since. Only that segment shows whether there is a gap. */
  #mayHaveGap = false;

  constructor(options: BackupsOptions) {
    this.#options = options;
    this.#folders = backupFolders(options.settings.dir);
  }

  /** How the database has to write its log. */
  get logMode(): LogMode {
    return logModeOf(this.#options.settings);
  }

  /** Lines about backups for the operator at the start. */
  get startLines(): string[] {
    const { settings, clock, dataDir } = this.#options;
    const isOn = settings.dir !== '';
    const lastAt = this.#scheduler?.lastAt ?? null;
    const warning = 'warning: backup.dir is on the same disk as data_dir, so a broken disk takes the backups too';
    return [
      backupLine({ isOn, everyMs: this.#everyMs, lastAt }, clock.now()),
      ...(isOn && isOnSameDisk(this.#folders.dir, dataDir) ? [warning] : []),
    ];
  }

  /** Begins to archive and to take backups, after the database has started. Problems are logged and never prevent the server's start. */
  async start(url: Secret): Promise<void> {
    const { settings, clock, logger, dataDir } = this.#options;
    if (settings.dir === '') return;
    this.#startedAt = clock.monotonic();
    try {
      makeBackupFolders(this.#folders);
    } catch (error) {
      logger.error({ err: error }, 'cannot create the folder of the backups (backup.dir); backups will fail');
    }
    const connect = connectTo(url);
    if (settings.wal) {
      this.#archiver = this.#makeArchiver(connect, dataDir);
      await this.#archiver.start();
    }
    this.#scheduler = this.#makeScheduler(connect, dataDir);
    await this.#scheduler.start();
    this.#tell();
  }

  /** Ends the schedule and aborts a running backup, before the database stops. */
  async stopSchedule(): Promise<void> {
    await this.#scheduler?.stop();
  }

  /** Archives the last segments, after the database has stopped. */
  async stopArchive(): Promise<void> {
    await this.#archiver?.stop(FLUSH_MS);
  }

  get #everyMs(): number | null {
    const { every_hours } = this.#options.settings;
    return every_hours === 0 ? null : every_hours * HOUR_MS;
  }

  #makeArchiver(connect: Connect, dataDir: string): Archiver {
    const { settings, clock, logger } = this.#options;
    const { spool, cluster } = postgresFiles(dataDir);
    return new Archiver({
      spool: new Spool(spool, cluster),
      walDir: this.#folders.wal,
      maxBytes: settings.wal_max_bytes,
      switchLog: () => switchLog(connect),
      clock,
      logger,
      onFailure: () => {
        this.#archiveFailures += 1;
        this.#tell();
      },
      onSwitchedOn: () => {
        this.#mayHaveGap = true;
      },
      onArchived: () => {
        if (this.#mayHaveGap) this.#scheduler?.lookAgain();
        this.#mayHaveGap = false;
      },
    });
  }

  #makeScheduler(connect: Connect, dataDir: string): Scheduler {
    const { settings, clock, logger, version } = this.#options;
    const { dir, base, wal } = this.#folders;
    const { keep, keys } = settings;
    return new Scheduler({
      everyMs: this.#everyMs,
      base,
      readState: () => this.#readState(),
      isReady: () => this.#archiver?.isOn !== false || clock.monotonic() - this.#startedAt >= ARCHIVE_WAIT_MS,
      createBackup: async (signal) => {
        const { createBackup } = await import('./create.ts');
        const { cluster: clusterDir } = postgresFiles(dataDir);
        const walDir = settings.wal ? wal : null;
        const from = { clusterDir, dataDir, backupDir: dir, walDir };
        return createBackup({ ...from, connect, clock, keys, version, signal, logger });
      },
      applyRetention: () => applyRetention({ backupDir: dir, keep, logger }),
      clock,
      logger,
      onChange: () => this.#tell(),
    });
  }

  async #readState(): Promise<FolderState> {
    const { dir } = this.#folders;
    const { readBackups, StoredWal } = await import('./stored-backups.ts');
    const { recoveryPaths } = await import('./ranges.rules.ts');
    const backups = (await readBackups(dir)).flatMap(({ folder, manifest }) =>
      manifest === null ? [] : [{ folder, manifest, at: Date.parse(manifest.finished_at) }],
    );
    const newest = backups.toSorted((a, b) => a.at - b.at).at(-1);
    const finishedAt = backups.map(({ at }) => at);
    if (newest === undefined || !this.#options.settings.wal) return { finishedAt, hasGap: false };
    const paths = recoveryPaths(newest.manifest, await StoredWal.open(dir, newest.folder));
    // The last path is the newest timeline, on which the database is running. Without any path, the newest backup is incomplete.
    return { finishedAt, hasGap: paths.at(-1)?.gap !== null };
  }

  #tell(): void {
    const lastAt = this.#scheduler?.lastAt ?? null;
    this.#options.onFigures({
      lastSuccessSecs: lastAt === null ? 0 : Math.floor(lastAt / 1000),
      failures: this.#scheduler?.failures ?? 0,
      archiveFailures: this.#archiveFailures,
    });
  }
}

/** Ends the current segment of the log. Returns the last segment that is complete. */
const switchLog = async (connect: Connect): Promise<Segment> => {
  const connection = await connect();
  try {
    const [row] = await connection.query<{ lsn: string }>('select pg_switch_wal()::text as lsn');
    const lsn = parseLsn(row?.lsn ?? '');
    if (lsn === null) throw new Error('PostgreSQL did not return a position of its log');
    // Only the number of the segment is used, because the timeline of a running database does not change.
    return segmentBefore(lsn, 1);
  } finally {
    await connection.close();
  }
};
