// Collects the write-ahead log of a backup while the cluster is copied: PostgreSQL may use a finished segment again at any time, so each
// segment is copied soon after it is complete.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@tunnel/runtime';
import type { Copied } from './copy-files.ts';
import type { ManifestFile } from './manifest.rules.ts';
import { IN_BACKUP } from './plan.rules.ts';
import { copyPacked, packWalFile, readPacked } from './wal-files.ts';
import { ARCHIVED, parseSegment, parseWalName, type Segment, segmentName } from './wal-names.rules.ts';
import { isSegment } from './wal-records.rules.ts';

/** Pause before a missing segment is looked for again, and how often. A segment can be on its way from the cluster to the archive. */
const LOOK_AGAIN_MS = 500;
const LOOKS = 10;

export interface WalCollectionOptions {
  readonly clusterDir: string;
  /** Folder with the spool of the archive. Null if the log is not archived. */
  readonly spoolDir: string | null;
  /** Folder of the archive. Null if the log is not archived. */
  readonly archiveDir: string | null;
  /** Folder of the unfinished backup. */
  readonly backup: string;
  readonly clock: Clock;
  /** The segment with the start of the backup. */
  readonly start: Segment;
}

export class WalCollection {
  readonly #options: WalCollectionOptions;
  readonly #files: ManifestFile[] = [];
  #next: Segment;

  constructor(options: WalCollectionOptions) {
    this.#options = options;
    this.#next = options.start;
  }

  /** The collected files, for the manifest. */
  get files(): readonly ManifestFile[] {
    return this.#files;
  }

  /** Copies the segments before `number` that were not copied yet. All of them are complete. */
  async collectBefore(number: number): Promise<void> {
    while (this.#next.number < number) {
      await this.#collect(this.#next);
      this.#next = { ...this.#next, number: this.#next.number + 1 };
    }
  }

  /** Copies the histories of timelines, without which PostgreSQL cannot follow a timeline other than the first. */
  async collectHistories(): Promise<void> {
    const pgWal = join(this.#options.clusterDir, 'pg_wal');
    for (const name of await readdir(pgWal)) {
      if (parseWalName(name)?.kind !== 'history') continue;
      const copied = await packWalFile(join(pgWal, name), this.#target(name), null);
      if (copied !== null) this.#took(name, copied);
    }
  }

  async #collect(segment: Segment): Promise<void> {
    const name = segmentName(segment);
    const { clusterDir, spoolDir, archiveDir, clock } = this.#options;
    const folders = [join(clusterDir, 'pg_wal'), ...(spoolDir === null ? [] : [spoolDir])];
    for (let look = 1; ; look += 1) {
      for (const folder of folders) {
        if (await this.#pack(name, join(folder, name))) return;
      }
      if (archiveDir !== null && (await this.#copyArchived(name, join(archiveDir, name + ARCHIVED)))) return;
      if (look === LOOKS) throw new Error(`segment ${name} of the write-ahead log is missing`);
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  async #pack(name: string, from: string): Promise<boolean> {
    const copied = await packWalFile(from, this.#target(name), parseSegment(name));
    if (copied === null) return false;
    this.#took(name, copied);
    return true;
  }

  async #copyArchived(name: string, from: string): Promise<boolean> {
    const segment = parseSegment(name);
    const content = await readPacked(from).catch(() => null);
    if (content === null || segment === null || !isSegment(content, segment)) return false;
    this.#took(name, await copyPacked(from, this.#target(name)));
    return true;
  }

  #target(name: string): string {
    return join(this.#options.backup, IN_BACKUP.wal, name + ARCHIVED);
  }

  #took(name: string, { bytes, sha256 }: Copied): void {
    this.#files.push({ path: `${IN_BACKUP.wal}/${name}${ARCHIVED}`, bytes, sha256 });
  }
}
