// Decisions of the archiver as pure functions: the order of files, when too much log is waiting, and how long to wait after a failure.
import { compareSegments, parseWalName, SEGMENT_BYTES, type Segment, type WalFile } from '../wal-names.rules.ts';

/** A file in the spool that belongs to the archive. */
export interface SpoolFile {
  readonly name: string;
  readonly file: WalFile;
}

/**
 * Returns the files of the spool in the order of archiving. Histories come first, because a restore chooses the number of its new timeline
 * by them. Then the segments follow in the order of the log, so that the archive has no gap at any moment. Other names are ignored: copies
 * in progress, and our own files.
 */
export const spoolOrder = (names: readonly string[]): SpoolFile[] =>
  names
    .flatMap((name) => {
      const file = parseWalName(name);
      return file === null ? [] : [{ name, file }];
    })
    .sort((a, b) => compareFiles(a.file, b.file) || (a.name < b.name ? -1 : 1));

const compareFiles = (a: WalFile, b: WalFile): number => {
  if (a.kind === 'history') return b.kind === 'history' ? a.timeline - b.timeline : -1;
  if (b.kind === 'history') return 1;
  return compareSegments(a.segment, b.segment);
};

/**
 * Returns whether a file was written before archiving was switched on, and so must not be archived: PostgreSQL can still hand over old
 * segments, and behind a gap they would look like a part of the archive. `beginsAfter` is the last segment before the switch.
 */
export const isBeforeArchive = (file: WalFile, beginsAfter: Segment | null): boolean =>
  beginsAfter !== null && file.kind !== 'history' && file.segment.number <= beginsAfter.number;

/**
 * Returns whether a backup that starts at `start` cannot reach the present, because archiving was switched on after it. Positions of an
 * older timeline say nothing: the database has been restored to an earlier moment since.
 */
export const isBehindGap = (start: Segment, beginsAfter: Segment | null): boolean =>
  beginsAfter !== null && (start.timeline < beginsAfter.timeline || start.number <= beginsAfter.number);

/** Names of PostgreSQL's archive_status folder: `<segment>.ready` waits for the spool. */
const READY = '.ready';

/** Returns the segments that PostgreSQL has finished but not yet handed over. */
export const waitingSegments = (statusNames: readonly string[]): SpoolFile[] =>
  spoolOrder(statusNames.filter((name) => name.endsWith(READY)).map((name) => name.slice(0, -READY.length)));

/** Log that is not archived yet, in the spool and in PostgreSQL's own folder. */
export const backlogBytes = (spoolBytes: number, statusNames: readonly string[]): number =>
  spoolBytes + waitingSegments(statusNames).filter(({ file }) => file.kind === 'segment').length * SEGMENT_BYTES;

const FIRST_RETRY_MS = 1000;
/** Longest pause between two attempts, and so the time until a backlog shrinks after the archive has room again. */
const LAST_RETRY_MS = 30_000;

export const retryDelayMs = (failures: number): number =>
  Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20));
