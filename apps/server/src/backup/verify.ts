// Checks backups by reading everything: the hash of each file, and every segment of the archived log up to the latest time that can be
// restored.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@tunnel/runtime';
import { Copier } from './copy-files.ts';
import { bytesOf, type Manifest } from './manifest.rules.ts';
import { latestOf, timeText } from './ranges.rules.ts';
import { backupFolders } from './settings.ts';
import { readBackups, type StoredBackup, StoredWal } from './stored-backups.ts';
import { ARCHIVED, type Segment, segmentName } from './wal-names.rules.ts';

export interface Verified {
  readonly name: string;
  readonly files: number;
  readonly bytes: number;
  readonly segments: number;
  readonly wal_to: string | null;
  /** Times at which restores of this backup end, because archiving of the log was off afterwards. */
  readonly gaps: readonly string[];
  /** One line for each bad file, which names the file. */
  readonly problems: readonly string[];
}

export interface VerifyOptions {
  readonly backupDir: string;
  /** Name of the only backup to check. Without it, all backups are checked. */
  readonly name?: string | undefined;
  readonly clock: Clock;
}

/** Checks backups, newest first. Returns null if there is no backup of the given name. */
export const verifyBackups = async ({ backupDir, name, clock }: VerifyOptions): Promise<Verified[] | null> => {
  const all = await readBackups(backupDir);
  const wanted = name === undefined ? all : all.filter((backup) => backup.name === name);
  if (name !== undefined && wanted.length === 0) return null;
  const copier = new Copier({ clock });
  // Backups share the segments of the archive, so each segment is read once.
  const checked = new Map<string, string | null>();
  const verified: Verified[] = [];
  for (const backup of wanted) {
    const result = await verifyOne({ backupDir, backup, copier, checked });
    // A backup that was removed meanwhile has no files, which is no fault.
    if (result.problems.length === 0 || (await exists(backup.folder))) verified.push(result);
  }
  return verified;
};

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

interface Check {
  readonly backupDir: string;
  readonly backup: StoredBackup;
  readonly copier: Copier;
  readonly checked: Map<string, string | null>;
}

const verifyOne = async ({ backupDir, backup, copier, checked }: Check): Promise<Verified> => {
  const { name, folder, manifest, problem } = backup;
  if (manifest === null) {
    return {
      name,
      files: 0,
      bytes: 0,
      segments: 0,
      wal_to: null,
      gaps: [],
      problems: [problem ?? `${folder} has no manifest`],
    };
  }
  const problems = await badFiles(folder, manifest, copier);
  const wal = await StoredWal.open(backupDir, folder);
  const ranges = await wal.ranges(manifest);
  const segments = new Map(ranges.flatMap((range) => range.segments).map((each) => [segmentName(each), each]));
  for (const segment of segments.values()) {
    const bad = await badSegment(wal, segment, folder, checked);
    if (bad !== null) problems.push(bad);
  }
  const gaps: string[] = [];
  for (const { gap, to } of ranges) {
    if (gap === null) continue;
    if (gap.isMarked) {
      gaps.push(timeText(to));
      continue;
    }
    const path = join(backupFolders(backupDir).wal, gap.missing + ARCHIVED);
    problems.push(`${path} is missing: the log can be restored only up to ${timeText(to)}`);
  }
  if (ranges.length === 0 && problems.length === 0) problems.push(`${folder} lacks segments of its write-ahead log`);
  const latest = latestOf(ranges);
  return {
    name,
    files: manifest.files.length,
    bytes: bytesOf(manifest),
    segments: segments.size,
    wal_to: latest === null ? null : timeText(latest),
    gaps,
    problems,
  };
};

const badFiles = async (folder: string, { files }: Manifest, copier: Copier): Promise<string[]> => {
  const problems: string[] = [];
  for (const { path, bytes, sha256 } of files) {
    const at = join(folder, path);
    const found = await copier.hash(at).catch((error: Error) => error);
    if (found instanceof Error) problems.push(`${at} cannot be read: ${found.message}`);
    else if (found === null) problems.push(`${at} is missing`);
    else if (found.bytes !== bytes) problems.push(`${at} has ${found.bytes} bytes instead of ${bytes}`);
    else if (found.sha256 !== sha256) problems.push(`${at} is corrupt: its content has changed since the backup`);
  }
  return problems;
};

/** Checks a segment of the archive. Segments in the backup are checked by their hashes. */
const badSegment = async (
  wal: StoredWal,
  segment: Segment,
  folder: string,
  checked: Map<string, string | null>,
): Promise<string | null> => {
  const path = wal.pathOf(segment) ?? '';
  if (path.startsWith(`${folder}/`)) return null;
  const known = checked.get(path);
  if (known !== undefined) return known;
  const bad = await wal.read(segment).then(
    () => null,
    (error: Error) => error.message,
  );
  checked.set(path, bad);
  return bad;
};
