// Takes a backup: the cluster copied while the database is running, the log that makes the copy consistent, and the rest of the data
// directory. A backup is written under a temporary name and renamed once every file is on disk.
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type Clock, type FileLock, type Logger, lockHolder, syncFolder, takeLock } from '@tunnel/runtime';
import { SPOOL } from '../embedded-postgres/postgres-files.ts';
import type { BackupConnection, Connect } from './connect.ts';
import { Copier, listEntries, removeFolder } from './copy-files.ts';
import { bytesOf, MANIFEST_FILE, type ManifestFile, manifestText, type NewManifest } from './manifest.rules.ts';
import {
  backupName,
  canVanish,
  entersCluster,
  entersData,
  IN_BACKUP,
  isUnfinishedName,
  type Plan,
  planCluster,
  planData,
  unfinishedName,
} from './plan.rules.ts';
import { refuseOthers } from './same-database.ts';
import { backupFolders } from './settings.ts';
import { MOST_MANIFEST_BYTES, readBackups } from './stored-backups.ts';
import { WalCollection } from './wal-collection.ts';
import { parseLsn, parseSegment, segmentAt, segmentBefore, segmentName } from './wal-names.rules.ts';

/** Interval at which finished segments of the log are collected. Far shorter than PostgreSQL's time between two checkpoints. */
const COLLECT_EVERY_MS = 1000;
/** Interval between lines about the progress. */
const PROGRESS_EVERY_MS = 5000;
/** How often the data directory is listed again because a file was replaced while it was copied. */
const DATA_TRIES = 5;

export interface CreateBackupOptions {
  readonly clusterDir: string;
  readonly dataDir: string;
  readonly backupDir: string;
  readonly connect: Connect;
  readonly clock: Clock;
  /** Includes the keys. */
  readonly keys: boolean;
  /** Folder of the archived log. Null if the log is not archived. */
  readonly walDir: string | null;
  /** Version of this server. */
  readonly version: string;
  readonly signal?: AbortSignal;
  readonly logger: Logger;
  readonly onProgress?: (line: string) => void;
}

export interface CreatedBackup {
  readonly name: string;
  readonly bytes: number;
}

/** Takes a backup of a running database. Throws a fault with the reason; then nothing is left behind. */
export const createBackup = async (options: CreateBackupOptions): Promise<CreatedBackup> => {
  const { dir, base, lock: lockPath } = backupFolders(options.backupDir);
  try {
    // The folder above must exist: if the disk of the backups is not mounted, a new folder would be on the wrong disk.
    for (const folder of [dir, base]) await mkdir(folder, { mode: 0o700 }).catch(ifThere);
  } catch (error) {
    throw failed(error);
  }
  const lock = lockBackups(lockPath);
  if (lock === null) throw new Fault('BACKUP_RUNNING', { pid: lockHolder(lockPath) ?? 0 });
  try {
    return await new BackupRun(options, base).run();
  } catch (error) {
    throw failed(error);
  } finally {
    lock.release();
  }
};

/** Takes the lock. Null if another backup holds the lock. A full disk is an ordinary reason for a failed backup. */
const lockBackups = (path: string): FileLock | null => {
  try {
    return takeLock(path);
  } catch (error) {
    throw failed(error);
  }
};

const ifThere = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EEXIST') throw error;
};

const failed = (error: unknown): Fault =>
  error instanceof Fault ? error : new Fault('BACKUP_FAILED', { reason: reasonOf(error) }, { cause: error });

const reasonOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' ? `the disk is full (${message})` : message;
};

class BackupRun {
  readonly #options: CreateBackupOptions;
  readonly #base: string;
  readonly #copier: Copier;
  readonly #files: ManifestFile[] = [];
  #collectedAt: number;
  #reportedAt: number;
  #collect: () => Promise<void> = async () => {};

  constructor(options: CreateBackupOptions, base: string) {
    this.#options = options;
    this.#base = base;
    const { clock, signal } = options;
    this.#collectedAt = clock.monotonic();
    this.#reportedAt = clock.monotonic();
    this.#copier = new Copier({ clock, signal, onPiece: (bytes) => this.#copied(bytes) });
  }

  async run(): Promise<CreatedBackup> {
    const { clock } = this.#options;
    await refuseOthers(await readBackups(this.#options.backupDir), this.#options.clusterDir);
    const present = await readdir(this.#base);
    for (const name of present.filter(isUnfinishedName)) await removeFolder(join(this.#base, name));
    const startedAt = new Date(clock.now()).toISOString();
    const name = backupName(clock.now(), new Set(present));
    const folder = join(this.#base, unfinishedName(name));
    const connection = await this.#options.connect();
    try {
      const positions = await this.#fill(folder, name, connection);
      const { version, keys } = this.#options;
      const files = this.#files;
      await this.#write(folder, { version, name, started_at: startedAt, ...positions, files, keys });
      await rename(folder, join(this.#base, name));
      await syncFolder(this.#base);
      return { name, bytes: bytesOf({ files }) };
    } catch (error) {
      await this.#copier.flush().catch(() => {});
      await removeFolder(folder).catch(() => {});
      throw error;
    } finally {
      // The end of the session also ends a backup that was started in it.
      await connection.close().catch(() => {});
    }
  }

  async #fill(
    folder: string,
    name: string,
    connection: BackupConnection,
  ): Promise<Pick<NewManifest, 'postgres' | 'finished_at' | 'wal_start' | 'wal_end'>> {
    const { clusterDir, walDir, clock } = this.#options;
    for (const part of Object.values(IN_BACKUP)) await this.#copier.folder(join(folder, part));
    const postgres = await majorVersion(connection);
    const start = await one<{ lsn: string }>(connection, 'select pg_backup_start($1, true)::text as lsn', [name]);
    const { segment } = await one<{ segment: string }>(connection, 'select pg_walfile_name($1::pg_lsn) as segment', [
      start.lsn,
    ]);
    const timeline = parseSegment(segment)?.timeline ?? 1;
    const first = segmentAt(positionOf(start.lsn), timeline);
    const spoolDir = walDir === null ? null : join(clusterDir, SPOOL);
    const wal = new WalCollection({ clusterDir, spoolDir, archiveDir: walDir, backup: folder, clock, start: first });
    this.#collect = async () => {
      const { lsn } = await one<{ lsn: string }>(connection, 'select pg_current_wal_lsn()::text as lsn');
      await wal.collectBefore(segmentAt(positionOf(lsn), timeline).number);
    };
    // The rest of the data directory comes first: a usage record that is missing in the copied journal is then in the database.
    await this.#copyData(folder);
    await this.#copyCluster(folder);
    this.#collect = async () => {};
    const stop = await one<{ lsn: string; label: string; tablespaces: string }>(
      connection,
      'select lsn::text as lsn, labelfile as label, spcmapfile as tablespaces from pg_backup_stop(false)',
    );
    const finished_at = new Date(clock.now()).toISOString();
    if (stop.tablespaces.trim() !== '') throw new Error('the cluster has tablespaces outside its folder');
    await this.#put(folder, `${IN_BACKUP.cluster}/backup_label`, stop.label);
    const last = segmentBefore(positionOf(stop.lsn), timeline);
    await wal.collectBefore(last.number + 1);
    await wal.collectHistories();
    this.#files.push(...wal.files);
    return {
      postgres,
      finished_at,
      wal_start: { segment: segmentName(first), lsn: start.lsn, timeline },
      wal_end: { segment: segmentName(last), lsn: stop.lsn, timeline },
    };
  }

  async #copyCluster(folder: string): Promise<void> {
    const { clusterDir } = this.#options;
    const plan = planCluster(await listEntries(clusterDir, { enters: entersCluster }));
    refuseLinks(plan, clusterDir);
    for (const { from, to } of plan.files) {
      if ((await this.#copy(join(clusterDir, from), folder, to)) || canVanish(from)) continue;
      throw new Error(`${join(clusterDir, from)} is missing`);
    }
  }

  /**
   * Copies the rest of the data directory. Journals are replaced by a new file while they are in use, so the folder is listed again if a
   * file has vanished.
   */
  async #copyData(folder: string): Promise<void> {
    const { dataDir, keys } = this.#options;
    const done = new Set<string>();
    for (let turn = 1; turn <= DATA_TRIES; turn += 1) {
      const plan = planData(await listEntries(dataDir, { enters: entersData, followsFiles: true }), { keys });
      refuseLinks(plan, dataDir);
      let vanished = false;
      for (const { from, to } of plan.files) {
        if (done.has(from)) continue;
        const copied = await this.#copy(join(dataDir, from), folder, to, { follows: true });
        if (copied) done.add(from);
        else vanished = true;
      }
      if (!vanished) return;
    }
  }

  async #copy(from: string, folder: string, to: string, { follows = false } = {}): Promise<boolean> {
    const copied = await this.#copier.copy({ from, to: join(folder, to), follows, flush: true });
    if (copied === null) return false;
    this.#files.push({ path: to, ...copied });
    return true;
  }

  async #put(folder: string, path: string, text: string): Promise<void> {
    await writeFlushed(join(folder, path), text);
    const sha256 = createHash('sha256').update(text).digest('hex');
    this.#files.push({ path, bytes: Buffer.byteLength(text), sha256 });
  }

  async #write(folder: string, manifest: NewManifest): Promise<void> {
    const text = manifestText(manifest);
    // No command could read the backup.
    if (text.length > MOST_MANIFEST_BYTES) throw new Error(`there are too many files: ${manifest.files.length}`);
    await writeFlushed(join(folder, MANIFEST_FILE), text);
    await this.#copier.syncAll();
    await syncFolder(folder);
  }

  async #copied(bytes: number): Promise<void> {
    const now = this.#options.clock.monotonic();
    if (now - this.#collectedAt >= COLLECT_EVERY_MS) {
      this.#collectedAt = now;
      await this.#collect();
    }
    if (now - this.#reportedAt < PROGRESS_EVERY_MS) return;
    this.#reportedAt = now;
    this.#options.onProgress?.(`copied ${Math.round(bytes / 1e6)} MB`);
  }
}

const refuseLinks = ({ refused }: Plan, dir: string): void => {
  const [link] = refused;
  if (link === undefined) return;
  throw new Error(`${join(dir, link)} is a symbolic link, which a backup cannot contain: move its target into ${dir}`);
};

const one = async <Row extends object>(
  connection: BackupConnection,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row> => {
  const [row] = await connection.query<Row>(text, values);
  if (row === undefined) throw new Error('the database returned no row');
  return row;
};

const majorVersion = async (connection: BackupConnection): Promise<number> => {
  const { version } = await one<{ version: string }>(
    connection,
    "select current_setting('server_version_num') as version",
  );
  return Math.floor(Number(version) / 10_000);
};

const positionOf = (lsn: string): bigint => {
  const position = parseLsn(lsn);
  if (position === null) throw new Error(`the database returned an invalid log position: ${lsn}`);
  return position;
};

const writeFlushed = async (path: string, text: string): Promise<void> => {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
};
