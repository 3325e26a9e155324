// Which times a backup can be restored to. Every restore to the past starts a new timeline of the log, so a backup can have several
// ranges: one per timeline that can be reached from it. Pure functions; the times of transactions are read elsewhere.
import type { Manifest } from './manifest.rules.ts';
import {
  type Ancestor,
  compareSegments,
  ownerOf,
  parseLsn,
  parseSegment,
  reachFrom,
  type Segment,
  segmentName,
} from './wal-names.rules.ts';

/** The segments and timeline histories that a restore can use: of the archive, and of the backup itself. */
export interface WalStock {
  readonly segments: readonly Segment[];
  /** Ancestors of each timeline other than the first. */
  readonly histories: ReadonlyMap<number, readonly Ancestor[]>;
  /** Segments that the archiver left out last, each time archiving was switched on. */
  readonly gaps: readonly Segment[];
}

/** A gap behind the last segment of a path. */
export interface Gap {
  /** Name of the first missing segment. */
  readonly missing: string;
  /** True if archiving was off meanwhile. False if the segments were lost. */
  readonly isMarked: boolean;
}

/** A way to recover: from the start of a backup along its timelines to the last segment before a gap. */
export interface RecoveryPath {
  readonly timeline: number;
  /** Needed segments, in the order of the log. */
  readonly segments: readonly Segment[];
  /** Position at which the timeline began. Null for the timeline of the backup. */
  readonly beganAt: bigint | null;
  /** Null if no later segment exists. */
  readonly gap: Gap | null;
}

/** A recovery path with the times that can be restored, in milliseconds. */
export interface RestoreRange extends RecoveryPath {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns the recovery paths of a backup: its own timeline first, then the timelines that began after the backup. Empty if a segment that
 * the backup itself needs is missing.
 */
export const recoveryPaths = (
  { wal_start, wal_end }: Pick<Manifest, 'wal_start' | 'wal_end'>,
  { segments, histories, gaps }: WalStock,
): RecoveryPath[] => {
  const start = parseSegment(wal_start.segment);
  const end = parseSegment(wal_end.segment);
  const consistentAt = parseLsn(wal_end.lsn);
  if (start === null || end === null || consistentAt === null) return [];
  const later = [...histories.keys()].filter((timeline) => timeline > start.timeline).sort((a, b) => a - b);
  return [start.timeline, ...later].flatMap((timeline): RecoveryPath[] => {
    const ancestors = timeline === start.timeline ? [] : (histories.get(timeline) ?? []);
    // A timeline that began before the end of the backup cannot follow it: the copied cluster would never become consistent.
    const left = ancestors.find((ancestor) => ancestor.timeline === start.timeline)?.endedAt;
    if (timeline !== start.timeline && (left === undefined || left < consistentAt)) return [];
    const { last, next } = reachFrom(start, segments, new Map([[timeline, ancestors]]));
    if (last === null || last.number < end.number || last.timeline !== timeline) return [];
    const along = ancestors.filter((ancestor) => ancestor.timeline >= start.timeline);
    const at = (number: number): Segment => ({ timeline: ownerOf(number, along, timeline), number });
    return [
      {
        timeline,
        segments: Array.from({ length: last.number - start.number + 1 }, (_, index) => at(start.number + index)),
        beganAt: ancestors.at(-1)?.endedAt ?? null,
        gap: next === null ? null : gapOf(at(last.number + 1), at(next - 1), gaps),
      },
    ];
  });
};

const gapOf = (first: Segment, last: Segment, gaps: readonly Segment[]): Gap => ({
  missing: segmentName(first),
  isMarked: gaps.some((gap) => compareSegments(gap, last) === 0),
});

/** A target for a recovery. */
export interface RecoveryTarget {
  readonly range: RestoreRange;
  /** Time at which the recovery stops. Null if the recovery applies everything on its path. */
  readonly at: number | null;
}

/**
 * Chooses the range for a time: the newest timeline with that time, because it was the server's own history then. Without a time, the
 * range that ends last. The newest timeline may have ended long ago: a server that was started for a trial on a restored copy also begins
 * a timeline. Returns null if no range contains the time.
 */
export const chooseTarget = (ranges: readonly RestoreRange[], at: number | null): RecoveryTarget | null => {
  const newestFirst = ranges.toSorted((a, b) => b.timeline - a.timeline);
  const range =
    at === null
      ? newestFirst.toSorted((a, b) => b.to - a.to)[0]
      : newestFirst.find(({ from, to }) => from <= at && at <= to);
  if (range === undefined) return null;
  // PostgreSQL fails if no transaction follows the target, so the end of a range is reached without a target.
  return { range, at: at === null || at >= range.to ? null : at };
};

/** Returns the latest time that can be restored. Null without ranges. */
export const latestOf = (ranges: readonly RestoreRange[]): number | null =>
  ranges.length === 0 ? null : Math.max(...ranges.map(({ to }) => to));

/** Describes ranges for a person, oldest first. */
export const rangesText = (ranges: readonly RestoreRange[]): string =>
  ranges
    .toSorted((a, b) => a.from - b.from)
    .map(({ from, to }) => `${timeText(from)} to ${timeText(to)}`)
    .join(', and ');

/** Formats a time as in the list of backups. */
export const timeText = (at: number): string => new Date(at).toISOString();
