// Restores a backup into a new data directory: copies the files, checks their hashes, unpacks the log, and lets PostgreSQL replay the log
// up to the wanted time. The directory is marked as unfinished meanwhile, so that no server starts on half a restore.
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type Clock, type FileLock, type Logger, type Secret, syncFolder, writeAtomic } from '@tunnel/runtime';
import { lockDataDir, UNFINISHED_RESTORE } from '../data-dir/data-dir.ts';
import { EmbeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { lastLogMode } from '../embedded-postgres/log-mode.ts';
import { postgresFiles, SPOOL } from '../embedded-postgres/postgres-files.ts';
import { Copier, removeFolder } from './copy-files.ts';
import { CLUSTER_FOLDERS, IN_BACKUP, restoredPath } from './plan.rules.ts';
import { timeText } from './ranges.rules.ts';
import { planRestore, type RestorePlan, type RestoreRequest } from './restore-plan.ts';
import { readPacked, writeSparse } from './wal-files.ts';
import { segmentName } from './wal-names.rules.ts';

/** Folder in the cluster with the unpacked log, from which PostgreSQL copies each segment that it replays. */
const UNPACKED = 'tunnel-restore-wal';
/** PostgreSQL runs the command in the folder of the cluster. A missing file is normal: PostgreSQL looks for the next one too. */
const RESTORE_COMMAND = `test -f "${UNPACKED}/%f" && cp "${UNPACKED}/%f" "%p"`;
/** Time limit for replaying the log. */
const RECOVERY_MS = 24 * 60 * 60 * 1000;
const PROGRESS_EVERY_MS = 5000;

/** File that makes the edge number its new usage records under a new journal, because the platform may have seen the old numbers. */
const RESTORED_JOURNAL = 'edge-journal/restored';

export interface RestoreOptions extends RestoreRequest {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onProgress: (line: string) => void;
  /** Called with the recovered database, before the restore counts as finished. */
  readonly finish: (database: Secret, at: number) => Promise<void>;
}

export interface Restored {
  readonly name: string;
  /** Time of the restored state, in milliseconds. */
  readonly at: number;
  /** True if the backup contains no keys, so that the operator has to put them in place. */
  readonly lacksKeys: boolean;
  /** Version of the server that took the backup. */
  readonly version: string;
}

/** Restores a backup. Throws a fault with the reason; then nothing is left in the new data directory. */
export const restoreBackup = async (options: RestoreOptions): Promise<Restored> => {
  const plan = await planRestore(options);
  const run = new RestoreRun(plan, options);
  return run.run();
};

class RestoreRun {
  readonly #plan: RestorePlan;
  readonly #options: RestoreOptions;
  readonly #copier: Copier;
  #reportedAt: number;

  constructor(plan: RestorePlan, options: RestoreOptions) {
    this.#plan = plan;
    this.#options = options;
    const { clock } = options;
    this.#reportedAt = clock.monotonic();
    this.#copier = new Copier({ clock, onPiece: (bytes) => this.#report(`copied ${Math.round(bytes / 1e6)} MB`) });
  }

  async run(): Promise<Restored> {
    const { to, manifest, backup } = this.#plan;
    let lock: FileLock | undefined;
    try {
      await this.#copier.folder(to);
      await this.#mark();
      lock = lockDataDir(to);
      await this.#copyFiles();
      await this.#copier.syncAll();
      await this.#unpackLog();
      const at = await this.#recover();
      await rm(join(to, 'postgres', UNPACKED), { recursive: true, force: true });
      await this.#withDatabase({}, (url) => this.#options.finish(url, at));
      lock.release();
      await rm(join(to, UNFINISHED_RESTORE));
      await syncFolder(to);
      return { name: backup.name, at, lacksKeys: !manifest.keys, version: manifest.version };
    } catch (error) {
      lock?.release();
      await this.#copier.flush().catch(() => {});
      await this.#cleanUp();
      if (error instanceof Fault && error.code !== 'CONFIG_DATABASE_EMBEDDED') throw error;
      const { message } = error as Error;
      throw new Fault('RESTORE_FAILED', { reason: message }, { cause: error });
    }
  }

  async #mark(): Promise<void> {
    const text = `${JSON.stringify({ from: this.#plan.backup.folder, pid: process.pid })}\n`;
    await writeAtomic(join(this.#plan.to, UNFINISHED_RESTORE), text, { flush: true, soleWriter: true });
    await syncFolder(this.#plan.to);
  }

  /** Removes what was written. The marker goes last, so that a kill in the middle leaves a marked directory. */
  async #cleanUp(): Promise<void> {
    const { to } = this.#plan;
    try {
      for (const name of await readdir(to)) {
        if (name !== UNFINISHED_RESTORE) await removeFolder(join(to, name));
      }
      await rm(join(to, UNFINISHED_RESTORE), { force: true });
    } catch (error) {
      this.#options.logger.warn({ dir: to, reason: (error as Error).message }, 'cannot remove an unfinished restore');
    }
  }

  async #copyFiles(): Promise<void> {
    const { to, manifest, backup } = this.#plan;
    for (const folder of CLUSTER_FOLDERS) await this.#copier.folder(join(to, 'postgres', folder));
    for (const { path, bytes, sha256 } of manifest.files) {
      const target = restoredPath(path);
      if (target === null) continue;
      const from = join(backup.folder, path);
      // PostgreSQL flushes the cluster itself before it replays the log.
      const flush = !path.startsWith(`${IN_BACKUP.cluster}/`);
      const copied = await this.#copier.copy({ from, to: join(to, target), flush });
      if (copied === null) throw new Error(`${from} is missing`);
      if (copied.bytes !== bytes || copied.sha256 !== sha256) {
        throw new Error(`${from} is corrupt: its content has changed since the backup. Try an earlier backup`);
      }
    }
    if (manifest.files.some(({ path }) => path.startsWith(`${IN_BACKUP.data}/edge-journal/`))) {
      await writeFile(join(to, RESTORED_JOURNAL), '', { mode: 0o600 });
    }
  }

  async #unpackLog(): Promise<void> {
    const { to, wal, target } = this.#plan;
    const folder = join(to, 'postgres', UNPACKED);
    await this.#copier.folder(folder);
    // All histories are unpacked, not only those on the way: PostgreSQL chooses a number for the new timeline that has no history yet.
    for (const [name, path] of wal.historyFiles)
      await writeFile(join(folder, name), await readPacked(path), { mode: 0o600 });
    const { segments } = target.range;
    for (const [index, segment] of segments.entries()) {
      await writeSparse(join(folder, segmentName(segment)), await wal.read(segment));
      this.#report(`unpacked ${index + 1} of ${segments.length} segments of the log`);
    }
  }

  /** Replays the log. Returns the time of the last replayed transaction, or of the backup if there was none. */
  async #recover(): Promise<number> {
    const { to, manifest, target } = this.#plan;
    const files = postgresFiles(to);
    // An empty spool continues the archive of the backup's server: PostgreSQL then archives the new timeline from its beginning.
    if (lastLogMode(files) === 'archive') await this.#copier.folder(join(files.cluster, SPOOL));
    await writeFile(join(files.cluster, 'recovery.signal'), '', { mode: 0o600 });
    let reached = Date.parse(manifest.finished_at);
    const onLine = (line: string): void => {
      reached = Math.max(reached, timeIn(line) ?? 0);
      const [, segment] = /restored log file "([0-9A-F]{24})"/.exec(line) ?? [];
      if (segment !== undefined) this.#report(`replaying ${segment}`);
    };
    const { at, range } = target;
    const settings = {
      hot_standby: 'off',
      restore_command: RESTORE_COMMAND,
      recovery_target_timeline: String(range.timeline),
      recovery_target_action: 'promote',
      // PostgreSQL accepts the setting only with a space between date and time.
      ...(at === null ? {} : { recovery_target_time: timeText(at).replace('T', ' ').replace('Z', '+00') }),
    };
    await this.#withDatabase({ settings, recovery: { timeoutMs: RECOVERY_MS, onLine } }, async () => {});
    return reached;
  }

  async #withDatabase(
    more: Pick<ConstructorParameters<typeof EmbeddedPostgres>[0], 'settings' | 'recovery'>,
    act: (url: Secret) => Promise<void>,
  ): Promise<void> {
    const { clock, logger } = this.#options;
    const postgres = new EmbeddedPostgres({ dataDir: this.#plan.to, logger, clock, ...more });
    const { url } = await postgres.start();
    try {
      await act(url);
    } finally {
      await postgres.stop();
    }
  }

  #report(line: string): void {
    const { clock, onProgress } = this.#options;
    const now = clock.monotonic();
    if (now - this.#reportedAt < PROGRESS_EVERY_MS) return;
    this.#reportedAt = now;
    onProgress(line);
  }
}

/** Returns the time of the last transaction that PostgreSQL reports at the end of a recovery. */
const timeIn = (line: string): number | null => {
  const [, date, time] = /last completed transaction was at log time (\S+) (\S+)\+00/.exec(line) ?? [];
  return date === undefined || time === undefined ? null : Math.floor(Date.parse(`${date}T${time.slice(0, 12)}Z`));
};
