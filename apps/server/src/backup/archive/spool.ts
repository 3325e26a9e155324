// The spool: the folder in the cluster into which PostgreSQL copies finished segments of the log, and the switch by which PostgreSQL stops
// copying them.
import { lstat, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder, writeAtomic } from '@tunnel/runtime';
import { makeSpool, SWITCHED_OFF, SWITCHED_ON } from '../../embedded-postgres/log-mode.ts';
import { parseSegment, type Segment, segmentName } from '../wal-names.rules.ts';
import { backlogBytes, type SpoolFile, spoolOrder, waitingSegments } from './archive.rules.ts';

/** Suffix of a copy in progress. */
const COPYING = '.part';
/** File with the last segment before archiving was switched on. Up to this segment, the log is not archived. */
const BEGINS_AFTER = 'begins-after';

export class Spool {
  readonly #folder: string;
  readonly #cluster: string;
  readonly #status: string;

  /** `cluster` is the folder of the database. */
  constructor(folder: string, cluster: string) {
    this.#folder = folder;
    this.#cluster = cluster;
    this.#status = join(cluster, 'pg_wal', 'archive_status');
  }

  pathOf(name: string): string {
    return join(this.#folder, name);
  }

  /** Returns the files to archive, in order. */
  async files(): Promise<SpoolFile[]> {
    await this.#check();
    return spoolOrder(await readdir(this.#folder));
  }

  async remove(name: string): Promise<void> {
    await rm(this.pathOf(name), { force: true });
  }

  /** Returns the bytes of log that are not archived yet. */
  async backlog(): Promise<number> {
    let spoolBytes = 0;
    for (const name of await readdir(this.#folder)) {
      const found = await stat(this.pathOf(name)).catch(() => null);
      spoolBytes += found?.isFile() === true ? found.size : 0;
    }
    return backlogBytes(spoolBytes, await readdir(this.#status));
  }

  /** Returns whether PostgreSQL still has to hand over a segment up to `last`. */
  async awaits(last: Segment): Promise<boolean> {
    const waiting = waitingSegments(await readdir(this.#status));
    return waiting.some(({ file }) => file.kind === 'segment' && file.segment.number <= last.number);
  }

  /** Whether PostgreSQL hands segments over. A spool without either mark was made by a restore, which continues an archive. */
  async isOn(): Promise<boolean> {
    return !(await isFile(this.pathOf(SWITCHED_OFF)));
  }

  /** Tells PostgreSQL to reuse segments without handing them over. Needs no space on the disk. */
  async switchOff(): Promise<void> {
    const isMarked = await isFile(this.pathOf(SWITCHED_ON));
    if (isMarked) await rename(this.pathOf(SWITCHED_ON), this.pathOf(SWITCHED_OFF));
    else await writeAtomic(this.pathOf(SWITCHED_OFF), '', { soleWriter: true });
    await syncFolder(this.#folder);
  }

  /** Tells PostgreSQL to hand over the segments after `last`. */
  async switchOn(last: Segment): Promise<void> {
    // Readable for a server that is later started as another user. The folder itself is closed to other users.
    const options = { flush: true, soleWriter: true, mode: 0o644 };
    await writeAtomic(this.pathOf(BEGINS_AFTER), `${segmentName(last)}\n`, options);
    // Copies that failed on a full disk. PostgreSQL copies nothing at this moment.
    for (const name of await readdir(this.#folder)) if (name.endsWith(COPYING)) await this.remove(name);
    await rename(this.pathOf(SWITCHED_OFF), this.pathOf(SWITCHED_ON));
    await syncFolder(this.#folder);
  }

  /** The last segment before archiving was switched on. Null if all segments belong to the archive. */
  async beginsAfter(): Promise<Segment | null> {
    const text = await readFile(this.pathOf(BEGINS_AFTER), 'utf8').catch(() => '');
    return parseSegment(text.trim());
  }

  /**
   * Checks the folder, which belongs to the user of the database server and must not be replaced by a link to another folder. A missing
   * folder is created: without the folder, PostgreSQL would keep its log until the disk is full.
   */
  async #check(): Promise<void> {
    const found = await lstat(this.#folder).catch(() => null);
    if (found === null) makeSpool(this.#folder, await stat(this.#cluster));
    else if (!found.isDirectory()) throw new Error(`${this.#folder} is not a folder`);
  }
}

const isFile = async (path: string): Promise<boolean> => (await lstat(path).catch(() => null))?.isFile() ?? false;
