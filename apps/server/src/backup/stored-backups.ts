// Reads a folder of backups: finished backups with their manifests, the archived log, and the times to which a backup can be restored.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readBounded } from '@tunnel/runtime';
import { MANIFEST_FILE, type Manifest, readManifest } from './manifest.rules.ts';
import { compareBackupNames, IN_BACKUP, isBackupName } from './plan.rules.ts';
import { type RecoveryPath, type RestoreRange, recoveryPaths, type WalStock } from './ranges.rules.ts';
import { backupFolders } from './settings.ts';
import { readPacked } from './wal-files.ts';
import {
  type Ancestor,
  ARCHIVED,
  parseArchivedName,
  parseHistory,
  type Segment,
  segmentName,
} from './wal-names.rules.ts';
import { isSegment, type TransactionEnd, transactionEnds } from './wal-records.rules.ts';

/** Largest manifest: about 250,000 files. A damaged manifest must not exhaust the memory of a running server. */
export const MOST_MANIFEST_BYTES = 32 * 1024 * 1024;

export interface StoredBackup {
  readonly name: string;
  readonly folder: string;
  /** The manifest, or the reason why there is none. */
  readonly manifest: Manifest | null;
  readonly problem: string | null;
}

/** Reads all finished backups, newest first. */
export const readBackups = async (backupDir: string): Promise<StoredBackup[]> => {
  const { base } = backupFolders(backupDir);
  const names = (await namesIn(base)).filter(isBackupName).sort(compareBackupNames).reverse();
  const backups: StoredBackup[] = [];
  for (const name of names) backups.push(await readBackup(join(base, name), name));
  return backups;
};

export const readBackup = async (folder: string, name: string): Promise<StoredBackup> => {
  try {
    const text = await readBounded(join(folder, MANIFEST_FILE), MOST_MANIFEST_BYTES);
    if (text === null) throw new Error('the file is missing');
    const read = readManifest(text);
    if ('manifest' in read) return { name, folder, manifest: read.manifest, problem: null };
    return { name, folder, manifest: null, problem: `${join(folder, MANIFEST_FILE)} cannot be used: ${read.problem}` };
  } catch (error) {
    const { message } = error as Error;
    return { name, folder, manifest: null, problem: `${join(folder, MANIFEST_FILE)} cannot be read: ${message}` };
  }
};

/** Returns the first file of a backup that is missing or has another size. Null if there is none. Reads no content. */
export const findMissingFile = async (folder: string, { files }: Manifest): Promise<string | null> => {
  for (const { path, bytes } of files) {
    const found = await stat(join(folder, path)).catch(() => null);
    if (found === null) return `${join(folder, path)} is missing`;
    if (found.size !== bytes) return `${join(folder, path)} has ${found.size} bytes instead of ${bytes}`;
  }
  return null;
};

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

// ---- the log ----

/** Packed files of the log in one or several folders: the archive, and the part of the log in a backup. */
export class StoredWal implements WalStock {
  readonly segments: readonly Segment[];
  readonly histories: ReadonlyMap<number, readonly Ancestor[]>;
  readonly gaps: readonly Segment[];
  /** Path of each file by its name without `.gz`. */
  readonly #paths: ReadonlyMap<string, string>;
  readonly #times: Map<string, readonly TransactionEnd[]>;

  private constructor(
    paths: ReadonlyMap<string, string>,
    histories: ReadonlyMap<number, readonly Ancestor[]>,
    gaps: readonly Segment[],
    times: Map<string, readonly TransactionEnd[]>,
  ) {
    this.#paths = paths;
    this.histories = histories;
    this.gaps = gaps;
    this.#times = times;
    this.segments = [...paths.keys()].flatMap((name) => {
      const file = parseArchivedName(name + ARCHIVED);
      return file?.kind === 'segment' ? [file.segment] : [];
    });
  }

  /** Lists the files of a backup and of the archive. A file of the backup is preferred, because the manifest has its hash. */
  static async open(
    backupDir: string | null,
    backup: string | null,
    times = new Map<string, readonly TransactionEnd[]>(),
  ): Promise<StoredWal> {
    const folders = [
      ...(backupDir === null ? [] : [backupFolders(backupDir).wal]),
      ...(backup === null ? [] : [join(backup, IN_BACKUP.wal)]),
    ];
    const paths = new Map<string, string>();
    const histories = new Map<number, readonly Ancestor[]>();
    const gaps: Segment[] = [];
    for (const folder of folders) {
      for (const name of await namesIn(folder)) {
        const file = parseArchivedName(name);
        if (file?.kind === 'gap') gaps.push(file.segment);
        if (file?.kind !== 'segment' && file?.kind !== 'history') continue;
        const path = join(folder, name);
        paths.set(name.slice(0, -ARCHIVED.length), path);
        if (file.kind !== 'history') continue;
        const content = await readPacked(path).catch(() => null);
        if (content !== null) histories.set(file.timeline, parseHistory(content.toString('utf8')));
      }
    }
    return new StoredWal(paths, histories, gaps, times);
  }

  /** Names of all timeline histories, with their paths. */
  get historyFiles(): readonly (readonly [name: string, path: string])[] {
    return [...this.#paths].filter(([name]) => name.endsWith('.history'));
  }

  pathOf(segment: Segment): string | undefined {
    return this.#paths.get(segmentName(segment));
  }

  /** Reads a segment. Throws an error that names the file if the file is missing or corrupt. */
  async read(segment: Segment): Promise<Buffer> {
    const path = this.pathOf(segment);
    if (path === undefined) throw new Error(`segment ${segmentName(segment)} of the write-ahead log is missing`);
    const content = await readPacked(path).catch((error: Error) => error);
    if (content instanceof Error) throw new Error(`${path} is corrupt: ${content.message}`);
    if (!isSegment(content, segment)) throw new Error(`${path} is corrupt: it contains another segment`);
    return content;
  }

  /** Returns the ranges of a backup, with the times of the transactions at their ends. */
  async ranges(manifest: Manifest): Promise<RestoreRange[]> {
    const ranges: RestoreRange[] = [];
    for (const path of recoveryPaths(manifest, this)) {
      const range = await this.#rangeOf(path, Date.parse(manifest.finished_at));
      if (range !== null) ranges.push(range);
    }
    return ranges;
  }

  async #rangeOf(path: RecoveryPath, finishedAt: number): Promise<RestoreRange | null> {
    const own = path.segments.filter(({ timeline }) => timeline === path.timeline);
    const to = await this.#edge(own.toReversed(), path, (times) => Math.max(...times));
    if (path.beganAt === null) return { ...path, from: finishedAt, to: Math.max(finishedAt, to ?? 0) };
    const from = await this.#edge(own, path, (times) => Math.min(...times));
    return from === null || to === null ? null : { ...path, from, to };
  }

  /** Returns the result of `pick` for the first of the segments with a transaction on the timeline of the path. */
  async #edge(
    segments: readonly Segment[],
    { beganAt }: RecoveryPath,
    pick: (times: readonly number[]) => number,
  ): Promise<number | null> {
    for (const segment of segments) {
      const ends = (await this.#endsIn(segment)).filter(({ lsn }) => beganAt === null || lsn >= beganAt);
      if (ends.length > 0) return pick(ends.map(({ at }) => at));
    }
    return null;
  }

  async #endsIn(segment: Segment): Promise<readonly TransactionEnd[]> {
    const path = this.pathOf(segment) ?? '';
    const known = this.#times.get(path);
    if (known !== undefined) return known;
    // A corrupt segment has no times here. `verify` and `restore` report it.
    const content = await this.read(segment).catch(() => null);
    const ends = content === null ? [] : [...transactionEnds(content, segment)];
    this.#times.set(path, ends);
    return ends;
  }
}
