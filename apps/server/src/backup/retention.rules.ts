// Which backups and which log of the archive can be deleted. Pure functions on names: a kept backup always keeps the log from its start on.
import { compareBackupNames } from './plan.rules.ts';
import { parseArchivedName, parseSegment } from './wal-names.rules.ts';

/** A finished backup in the folder. */
export interface KeptBackup {
  readonly name: string;
  /** Segment of the log at which the backup starts. Null if the manifest cannot be read. */
  readonly walStart: string | null;
}

export interface RetentionPlan {
  /** Names of backups to delete, oldest first. */
  readonly backups: readonly string[];
  /** Names of files to delete from the archive of the log. */
  readonly wal: readonly string[];
}

/**
 * Plans what to delete. The newest `keep` backups with a readable manifest are kept. An unreadable backup does not count, and is deleted
 * once it is older than all kept backups. Log is kept from the earliest start of a remaining backup on. While a remaining backup is
 * unreadable, no log is deleted, because its start is unknown. Without any backup, no log is deleted either: the first backup may be in
 * progress, and needs the log.
 */
export const planRetention = (
  stored: readonly KeptBackup[],
  walNames: readonly string[],
  keep: number,
): RetentionPlan => {
  const newestFirst = [...stored].sort((a, b) => compareBackupNames(b.name, a.name));
  const oldestKept = newestFirst.filter(({ walStart }) => walStart !== null)[keep - 1];
  const expired =
    oldestKept === undefined
      ? []
      : newestFirst.filter(({ name }) => compareBackupNames(name, oldestKept.name) < 0).reverse();
  const remaining = stored.filter((backup) => !expired.includes(backup));
  return { backups: expired.map(({ name }) => name), wal: expiredWal(remaining, walNames) };
};

/**
 * Returns the files of the archive that no remaining backup needs. Segments are compared by their number only: a backup can need the
 * segments of a later timeline, never segments with a smaller number. Histories of timelines are always kept.
 */
const expiredWal = (remaining: readonly KeptBackup[], walNames: readonly string[]): string[] => {
  const starts = remaining.map(({ walStart }) => (walStart === null ? null : (parseSegment(walStart)?.number ?? null)));
  const known = starts.filter((start) => start !== null);
  if (known.length === 0 || known.length < starts.length) return [];
  const first = Math.min(...known);
  return walNames.filter((name) => {
    const file = parseArchivedName(name);
    return file !== null && file.kind !== 'history' && file.segment.number < first;
  });
};
