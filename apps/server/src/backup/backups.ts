// Backups of a server with an embedded database: the archive of the log and the schedule, for the process that holds the database. The code
// that takes a backup is loaded when the first backup is due.
import type { ServerConfig } from '@tunnel/config/server';
import type { BackupFigures, Clock, Logger, Secret } from '@tunnel/runtime';
import type { LogMode } from '../embedded-postgres/log-mode.ts';
import { postgresFiles } from '../embedded-postgres/postgres-files.ts';
import { isBehindGap } from './archive/archive.rules.ts';
import { Archiver } from './archive/archiver.ts';
import { Spool } from './archive/spool.ts';
import { type Connect, connectTo } from './connect.ts';
import { applyRetention } from './retention.ts';
import { backupLine } from './schedule.rules.ts';
import { type FolderState, Scheduler } from './scheduler.ts';
import { type BackupFolders, backupFolders, isOnSameDisk, logModeOf, makeBackupFolders } from './settings.ts';
import { parseLsn, parseSegment, type Segment, segmentBefore } from './wal-names.rules.ts';

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
  readonly #spool: Spool;
  #archiver: Archiver | null = null;
  #scheduler: Scheduler | null = null;
  #archiveFailures = 0;
  #startedAt = 0;

  constructor(options: BackupsOptions) {
    this.#options = options;
    this.#folders = backupFolders(options.settings.dir);
    const { spool, cluster } = postgresFiles(options.dataDir);
    this.#spool = new Spool(spool, cluster);
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

  /** Begins to archive, after the database has started. Problems are logged and never prevent the server's start. */
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
      this.#archiver = this.#makeArchiver(connect);
      await this.#archiver.start();
    }
    this.#scheduler = this.#makeScheduler(connect, dataDir);
  }

  /**
   * Begins to take backups, after the parts of the server have started: a first start creates keys and tables, and a backup without them
   * could not be used.
   */
  async startSchedule(): Promise<void> {
    if (this.#scheduler === null) return;
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

  #makeArchiver(connect: Connect): Archiver {
    const { settings, clock, logger } = this.#options;
    return new Archiver({
      spool: this.#spool,
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
        this.#scheduler?.lookAgain();
        if (this.#everyMs !== null) return;
        logger.warn({}, 'take a backup now (`tunnel-server backup create`): no earlier backup can reach later changes');
      },
    });
  }

  #makeScheduler(connect: Connect, dataDir: string): Scheduler {
    const { settings, clock, logger, version } = this.#options;
    const { dir, base, wal } = this.#folders;
    const { keep, keys } = settings;
    const { cluster: clusterDir } = postgresFiles(dataDir);
    return new Scheduler({
      everyMs: this.#everyMs,
      base,
      readState: () => this.#readState(),
      isReady: () => this.#archiver?.isOn !== false || clock.monotonic() - this.#startedAt >= ARCHIVE_WAIT_MS,
      createBackup: async (signal) => {
        const { createBackup } = await import('./create.ts');
        const walDir = settings.wal ? wal : null;
        const from = { clusterDir, dataDir, backupDir: dir, walDir };
        return createBackup({ ...from, connect, clock, keys, version, signal, logger });
      },
      applyRetention: () => applyRetention({ backupDir: dir, clusterDir, keep, logger }),
      clock,
      logger,
      onChange: () => this.#tell(),
    });
  }

  async #readState(): Promise<FolderState> {
    const { dir } = this.#folders;
    const { readBackups, StoredWal } = await import('./stored-backups.ts');
    const { recoveryPaths } = await import('./ranges.rules.ts');
    const { backupsOfOthers } = await import('./same-database.ts');
    const stored = await readBackups(dir);
    // With backups of another database only, a first backup is due, which fails and says so at once.
    const others = await backupsOfOthers(stored, postgresFiles(this.#options.dataDir).cluster);
    const backups = stored.flatMap((backup) => {
      const { folder, manifest } = backup;
      return manifest === null || others.has(backup)
        ? []
        : [{ folder, manifest, at: Date.parse(manifest.finished_at) }];
    });
    const newest = backups.toSorted((a, b) => a.at - b.at).at(-1);
    const finishedAt = backups.map(({ at }) => at);
    if (newest === undefined || !this.#options.settings.wal) return { finishedAt, hasGap: false };
    const start = parseSegment(newest.manifest.wal_start.segment);
    if (start === null || isBehindGap(start, await this.#spool.beginsAfter())) return { finishedAt, hasGap: true };
    const paths = recoveryPaths(newest.manifest, await StoredWal.open(dir, newest.folder));
    // The database is running on one of the paths. A gap on any path ends with the next backup. Without any path, the newest backup is
    // incomplete.
    return { finishedAt, hasGap: paths.length === 0 || paths.some(({ gap }) => gap !== null) };
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

const SWITCH_LOG = 'select pg_switch_wal()::text as lsn, pg_walfile_name(pg_current_wal_insert_lsn()) as current';

/** Ends the current segment of the log. Returns the last segment that is complete. */
const switchLog = async (connect: Connect): Promise<Segment> => {
  const connection = await connect();
  try {
    const [row] = await connection.query<{ lsn: string; current: string }>(SWITCH_LOG);
    const lsn = parseLsn(row?.lsn ?? '');
    const current = parseSegment(row?.current ?? '');
    if (lsn === null || current === null) throw new Error('PostgreSQL did not return a position of its log');
    return segmentBefore(lsn, current.timeline);
  } finally {
    await connection.close();
  }
};
