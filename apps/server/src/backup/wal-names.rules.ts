// File names of PostgreSQL's write-ahead log (WAL): which segment a name or a log position belongs to, which segment follows, and how far a
// set of archived segments reaches without a gap. Pure functions on names and numbers.

/** Size of a WAL segment, PostgreSQL's default. The embedded database never uses another size. */
export const SEGMENT_BYTES = 16 * 1024 * 1024;

/** Segments per "log", the middle eight digits of a segment's name: 4 GiB. */
const SEGMENTS_PER_LOG = 0x1_0000_0000 / SEGMENT_BYTES;

/** A segment of the WAL. A restore to an earlier time starts a new timeline, and can write the same segment numbers again. */
export interface Segment {
  readonly timeline: number;
  /** Position of the segment in the log, counted from 0. */
  readonly number: number;
}

const SEGMENT_NAME = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$/;

/** Parses the name of a segment, such as `000000010000000000000003`. Null for any other name. */
export const parseSegment = (name: string): Segment | null => {
  const [, timeline, log, inLog] = SEGMENT_NAME.exec(name) ?? [];
  if (timeline === undefined || log === undefined || inLog === undefined) return null;
  const within = Number.parseInt(inLog, 16);
  if (within >= SEGMENTS_PER_LOG) return null;
  const segment = {
    timeline: Number.parseInt(timeline, 16),
    number: Number.parseInt(log, 16) * SEGMENTS_PER_LOG + within,
  };
  return segment.timeline === 0 ? null : segment;
};

export const segmentName = ({ timeline, number }: Segment): string =>
  [timeline, Math.floor(number / SEGMENTS_PER_LOG), number % SEGMENTS_PER_LOG].map(eightDigits).join('');

const eightDigits = (value: number): string => value.toString(16).toUpperCase().padStart(8, '0');

export const nextSegment = ({ timeline, number }: Segment): Segment => ({ timeline, number: number + 1 });

/** Orders segments by their position in the log, and within a position by timeline. Negative if `a` comes first. */
export const compareSegments = (a: Segment, b: Segment): number => a.number - b.number || a.timeline - b.timeline;

/** Parses a log position (LSN) such as `0/16B3748`. Null for any other text. */
export const parseLsn = (text: string): bigint | null => {
  const [, high, low] = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i.exec(text) ?? [];
  return high === undefined || low === undefined ? null : (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
};

/** Returns the segment with the byte at a log position. */
export const segmentAt = (lsn: bigint, timeline: number): Segment => ({
  timeline,
  number: Number(lsn / BigInt(SEGMENT_BYTES)),
});

/** Returns the segment with the byte before a log position: the last segment needed to replay the log up to the position. */
export const segmentBefore = (lsn: bigint, timeline: number): Segment => segmentAt(lsn > 0n ? lsn - 1n : lsn, timeline);

// ---- files of an archive ----

/** A file that PostgreSQL archives. */
export type WalFile =
  | { readonly kind: 'segment'; readonly segment: Segment }
  /** The unfinished last segment of an old timeline, archived when a new timeline begins. */
  | { readonly kind: 'partial'; readonly segment: Segment }
  /** Text file with the ancestors of a timeline. */
  | { readonly kind: 'history'; readonly timeline: number }
  /** Text file about a base backup that began in a segment. */
  | { readonly kind: 'label'; readonly segment: Segment };

/** Suffix of archived files, which are compressed. */
export const ARCHIVED = '.gz';

/** Parses the name of a file that PostgreSQL archives, without `.gz`. Null for any other name. */
export const parseWalName = (name: string): WalFile | null => {
  const [, timeline] = /^([0-9A-F]{8})\.history$/.exec(name) ?? [];
  if (timeline !== undefined) return { kind: 'history', timeline: Number.parseInt(timeline, 16) };
  const segment = parseSegment(name.slice(0, 24));
  if (segment === null) return null;
  const rest = name.slice(24);
  if (rest === '') return { kind: 'segment', segment };
  if (rest === '.partial') return { kind: 'partial', segment };
  return /^\.[0-9A-F]{8}\.backup$/.test(rest) ? { kind: 'label', segment } : null;
};

/**
 * Suffix of the empty file that marks a gap: the archiver left out the segment of that name, and all segments before it that are missing,
 * because archiving was off. A segment that is missing without a mark was lost.
 */
export const GAP = '.gap';

/** A file of the archive. */
export type ArchivedFile = WalFile | { readonly kind: 'gap'; readonly segment: Segment };

/** Parses the name of a file in the archive. Null for any other name, such as the remains of an interrupted write. */
export const parseArchivedName = (name: string): ArchivedFile | null => {
  if (name.endsWith(ARCHIVED)) return parseWalName(name.slice(0, -ARCHIVED.length));
  const segment = name.endsWith(GAP) ? parseSegment(name.slice(0, -GAP.length)) : null;
  return segment === null ? null : { kind: 'gap', segment };
};

// ---- timelines ----

/** An ancestor of a timeline, which ended where the next timeline began. */
export interface Ancestor {
  readonly timeline: number;
  readonly endedAt: bigint;
}

/** Parses a history file: one ancestor per line, oldest first. Lines that are not an ancestor are comments. */
export const parseHistory = (text: string): Ancestor[] =>
  text.split('\n').flatMap((line) => {
    const [, timeline, lsn = ''] = /^\s*(\d+)\s+(\S+)/.exec(line) ?? [];
    const endedAt = parseLsn(lsn);
    return timeline === undefined || endedAt === null ? [] : [{ timeline: Number(timeline), endedAt }];
  });

/** How far archived segments reach from a start without a gap. */
export interface Reach {
  /** The timeline to recover to: the newest timeline that descends from the start. */
  readonly timeline: number;
  /** The last segment before the first gap. Null if the start itself is missing. */
  readonly last: Segment | null;
  /** Number of the first segment behind the first gap, which cannot be reached. Null if there is no gap. */
  readonly next: number | null;
}

/**
 * Returns how far archived segments reach from `start`. Segments of other timelines than the newest descendant's ancestors are ignored:
 * they belong to a past that a restore has replaced. `histories` has the ancestors of each timeline other than the first.
 */
export const reachFrom = (
  start: Segment,
  segments: Iterable<Segment>,
  histories: ReadonlyMap<number, readonly Ancestor[]> = new Map(),
): Reach => {
  const names = new Set<string>();
  const numbers: number[] = [];
  const timeline = newestDescendant(start, histories);
  const path = (histories.get(timeline) ?? []).filter((ancestor) => ancestor.timeline >= start.timeline);
  for (const segment of segments) {
    if (ownerOf(segment.number, path, timeline) !== segment.timeline) continue;
    names.add(segmentName(segment));
    numbers.push(segment.number);
  }
  let last: Segment | null = null;
  for (let { number } = start; ; number += 1) {
    const segment = { timeline: ownerOf(number, path, timeline), number };
    if (!names.has(segmentName(segment))) break;
    last = segment;
  }
  const reached = last?.number ?? start.number - 1;
  const next = numbers.reduce((least, number) => (number > reached ? Math.min(least, number) : least), Infinity);
  return { timeline, last, next: next === Infinity ? null : next };
};

/** Returns the newest timeline that branched off after `start`, or the start's own timeline. */
const newestDescendant = (start: Segment, histories: ReadonlyMap<number, readonly Ancestor[]>): number => {
  const descendants = [...histories].filter(([, ancestors]) =>
    ancestors.some(
      ({ timeline, endedAt }) => timeline === start.timeline && segmentAt(endedAt, timeline).number >= start.number,
    ),
  );
  return Math.max(start.timeline, ...descendants.map(([timeline]) => timeline));
};

/** Returns the timeline whose file has a segment number. The segment in which a timeline ended is complete in the next timeline. */
export const ownerOf = (number: number, path: readonly Ancestor[], newest: number): number =>
  path.find(({ timeline, endedAt }) => number < segmentAt(endedAt, timeline).number)?.timeline ?? newest;
