// Lists the finished backups of a folder, with the times to which each can be restored.
import { bytesOf } from './manifest.rules.ts';
import { latestOf, timeText } from './ranges.rules.ts';
import { findMissingFile, readBackups, type StoredBackup, StoredWal } from './stored-backups.ts';
import type { TransactionEnd } from './wal-records.rules.ts';

export interface ListedBackup {
  readonly name: string;
  /** Time of the copied state. Null if the manifest cannot be read. */
  readonly at: string | null;
  readonly bytes: number;
  /** Earliest and latest time to which the backup can be restored. */
  readonly wal_from: string | null;
  readonly wal_to: string | null;
  /** True if every file is there in full length. `verify` also reads the contents. */
  readonly ok: boolean;
}

/** Lists backups, newest first. */
export const listBackups = async (backupDir: string): Promise<ListedBackup[]> => {
  const times = new Map<string, readonly TransactionEnd[]>();
  const listed: ListedBackup[] = [];
  for (const backup of await readBackups(backupDir)) listed.push(await describe(backupDir, backup, times));
  return listed;
};

const describe = async (
  backupDir: string,
  { name, folder, manifest }: StoredBackup,
  times: Map<string, readonly TransactionEnd[]>,
): Promise<ListedBackup> => {
  if (manifest === null) return { name, at: null, bytes: 0, wal_from: null, wal_to: null, ok: false };
  const wal = await StoredWal.open(backupDir, folder, times);
  const ranges = await wal.ranges(manifest);
  const latest = latestOf(ranges);
  const isComplete = (await findMissingFile(folder, manifest)) === null;
  return {
    name,
    at: manifest.finished_at,
    bytes: bytesOf(manifest),
    wal_from: ranges[0] === undefined ? null : timeText(ranges[0].from),
    wal_to: latest === null ? null : timeText(latest),
    ok: isComplete && latest !== null,
  };
};
