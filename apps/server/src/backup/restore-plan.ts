// Decides what a restore does, and refuses an impossible restore before a byte is written: which backup, to which time, along which part
// of the log, and whether the new data directory can take it.
import { existsSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '@tunnel/errors';
import { readRunFile, UNFINISHED_RESTORE } from '../data-dir/data-dir.ts';
import { MAJOR_VERSION } from '../embedded-postgres/cluster.ts';
import { isAbsentOrEmpty } from './copy-files.ts';
import { bytesOf, MANIFEST_FILE, type Manifest } from './manifest.rules.ts';
import { chooseTarget, type RecoveryTarget, type RestoreRange, rangesText, timeText } from './ranges.rules.ts';
import { backupFolders } from './settings.ts';
import { findMissingFile, readBackup, readBackups, type StoredBackup, StoredWal } from './stored-backups.ts';
import { SEGMENT_BYTES } from './wal-names.rules.ts';
import type { TransactionEnd } from './wal-records.rules.ts';

/** Factor by which an unpacked segment is at most larger than its packed file, for the estimate of the needed space. */
const UNPACKED_PER_PACKED = 20;
/** Space for the files that PostgreSQL creates at its start. */
const SPARE_BYTES = 128 * 1024 * 1024;

export interface RestoreRequest {
  /** Folder of all backups, or of one backup. */
  readonly from: string;
  /** The new data directory. */
  readonly to: string;
  /** Time to restore, in milliseconds. Null: the latest. */
  readonly at: number | null;
}

export interface RestorePlan {
  readonly backup: StoredBackup;
  readonly manifest: Manifest;
  readonly wal: StoredWal;
  readonly target: RecoveryTarget;
  readonly to: string;
}

const refuse = (reason: string): Fault => new Fault('CONFIG_BACKUP', { reason });

/** Checks a request and returns the plan. Throws a fault with the reason if the restore is impossible. Writes nothing. */
export const planRestore = async ({ from, to, at }: RestoreRequest): Promise<RestorePlan> => {
  const target = resolve(to);
  await refuseUsed(target);
  const { backupDir, backups } = await findBackups(resolve(from));
  const chosen = await choose(backupDir, backups, at);
  const { folder } = chosen.backup;
  if (String(chosen.manifest.postgres) !== MAJOR_VERSION) {
    const { postgres } = chosen.manifest;
    throw refuse(
      `${folder} was taken with PostgreSQL ${postgres}, and this version includes PostgreSQL ${MAJOR_VERSION}: restore it with the version of tunnel-server that took it (${chosen.manifest.version})`,
    );
  }
  const missing = await findMissingFile(folder, chosen.manifest);
  if (missing !== null) throw refuse(`the backup cannot be restored: ${missing}`);
  await refuseFull(target, chosen);
  return { ...chosen, to: target };
};

const refuseUsed = async (to: string): Promise<void> => {
  if (await isAbsentOrEmpty(to)) return;
  if (existsSync(join(to, UNFINISHED_RESTORE))) throw new Fault('CONFIG_RESTORE_UNFINISHED', { dir: to });
  const pid = readRunFile(to)?.pid;
  if (pid !== undefined) throw new Fault('CONFIG_DATA_DIR_IN_USE', { dir: to, pid });
  throw refuse(
    `${to} is not empty: a restore writes only into a new data directory, so choose a path that does not exist`,
  );
};

// ---- which backup ----

interface Found {
  /** Folder of all backups, with the archived log. Null for a backup outside such a folder. */
  readonly backupDir: string | null;
  readonly backups: readonly StoredBackup[];
}

/** Finds backups: all backups of a folder, one backup by its folder, or one backup by its name behind the folder. */
const findBackups = async (from: string): Promise<Found> => {
  if (existsSync(backupFolders(from).base)) {
    const backups = await readBackups(from);
    if (backups.length === 0) throw refuse(`${from} contains no finished backup`);
    return { backupDir: from, backups };
  }
  const name = basename(from);
  for (const folder of [from, join(backupFolders(dirname(from)).base, name)]) {
    if (!existsSync(join(folder, MANIFEST_FILE))) continue;
    const above = dirname(dirname(folder));
    const isInFolder = dirname(folder) === backupFolders(above).base;
    return { backupDir: isInFolder ? above : null, backups: [await readBackup(folder, name)] };
  }
  throw refuse(
    `${from} contains no backup: use the folder of \`[backup] dir\`, or that folder with the name of a backup`,
  );
};

type Chosen = Omit<RestorePlan, 'to'>;

/** Chooses the backup from which the time can be reached: the newest that can, or without a time, the one that reaches furthest. */
const choose = async (
  backupDir: string | null,
  backups: readonly StoredBackup[],
  at: number | null,
): Promise<Chosen> => {
  const times = new Map<string, readonly TransactionEnd[]>();
  const ranges: RestoreRange[] = [];
  let best: Chosen | null = null;
  for (const backup of backups) {
    const { folder, manifest } = backup;
    if (manifest === null) continue;
    const wal = await StoredWal.open(backupDir, folder, times);
    const found = await wal.ranges(manifest);
    ranges.push(...found);
    const target = chooseTarget(found, at);
    if (target === null || (best !== null && best.target.range.to >= target.range.to)) continue;
    best = { backup, manifest, wal, target };
  }
  if (best !== null) return best;
  const [problem] = backups.flatMap((backup) => backup.problem ?? []);
  if (ranges.length === 0)
    throw refuse(problem ?? 'no backup has all the segments of the write-ahead log that it needs');
  throw refuse(`${timeText(at ?? 0)} cannot be restored. Possible: ${rangesText(merged(ranges))}`);
};

/** Joins ranges that overlap, because several backups share the same log. */
const merged = (ranges: readonly RestoreRange[]): RestoreRange[] => {
  const joined: RestoreRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last === undefined || range.from > last.to) joined.push(range);
    else joined[joined.length - 1] = { ...last, to: Math.max(last.to, range.to) };
  }
  return joined;
};

// ---- space ----

const refuseFull = async (to: string, { manifest, wal, target }: Chosen): Promise<void> => {
  let needed = bytesOf(manifest) + SPARE_BYTES;
  for (const segment of target.range.segments) {
    const packed = (await stat(wal.pathOf(segment) ?? '').catch(() => null))?.size ?? 0;
    // A segment is unpacked once, and copied once by PostgreSQL.
    needed += 2 * Math.min(SEGMENT_BYTES, packed * UNPACKED_PER_PACKED);
  }
  const { bavail, bsize } = await statfs(nearestFolder(to));
  const free = bavail * bsize;
  if (free >= needed) return;
  const inMb = (bytes: number): string => `${Math.ceil(bytes / 1e6)} MB`;
  throw refuse(`the restore needs ${inMb(needed)} in ${to}, and only ${inMb(free)} are free`);
};

const nearestFolder = (path: string): string => (existsSync(path) ? path : nearestFolder(dirname(path)));
