import { describe, expect, it } from 'vitest';
import { chooseTarget, type RestoreRange, rangesText, recoveryPaths } from './ranges.rules.ts';
import { type Ancestor, type Segment, segmentName } from './wal-names.rules.ts';

const SEGMENT_BYTES = 16 * 1024 * 1024;

const segments = (...names: string[]): Segment[] =>
  names.map((name) => {
    const [timeline = 1, number = 0] = name.split('/').map(Number);
    return { timeline, number };
  });

const short = (all: readonly Segment[]): string[] => all.map(({ timeline, number }) => `${timeline}/${number}`);

const backup = (start: number, end = start, timeline = 1) => {
  const position = (number: number, offset: number) => ({
    segment: segmentName({ timeline, number }),
    lsn: `0/${(number * SEGMENT_BYTES + offset).toString(16).toUpperCase()}`,
    timeline,
  });
  return { wal_start: position(start, 40), wal_end: position(end, 300) };
};

const endedIn = (timeline: number, number: number): Ancestor => ({
  timeline,
  endedAt: BigInt(number) * BigInt(SEGMENT_BYTES) + 1000n,
});

const NONE: ReadonlyMap<number, readonly Ancestor[]> = new Map();

describe('the recovery paths of a backup', () => {
  it('reach from its first segment to the last segment before a gap', () => {
    const [path, ...more] = recoveryPaths(backup(2, 3), {
      segments: segments('1/1', '1/2', '1/3', '1/4', '1/6'),
      histories: NONE,
      gaps: [],
    });
    expect(more).toEqual([]);
    expect(short(path?.segments ?? [])).toEqual(['1/2', '1/3', '1/4']);
    expect(path?.gap).toEqual({ missing: segmentName({ timeline: 1, number: 5 }), isMarked: false });
  });

  it('know a gap that the archiver marked, and take any other missing segment for a loss', () => {
    const isMarked = (all: readonly string[], gaps: readonly string[]) =>
      recoveryPaths(backup(2), { segments: segments(...all), histories: NONE, gaps: segments(...gaps) })[0]?.gap
        ?.isMarked;
    expect(isMarked(['1/2', '1/3', '1/7'], ['1/6'])).toBe(true);
    // Archiving was switched off again before a segment was archived.
    expect(isMarked(['1/2', '1/3', '1/7'], ['1/5', '1/6'])).toBe(true);
    // The first segment after the mark is missing.
    expect(isMarked(['1/2', '1/3', '1/8'], ['1/6'])).toBe(false);
    expect(isMarked(['1/2', '1/4', '1/7'], ['1/6'])).toBe(false);
    expect(isMarked(['1/2', '1/3', '1/7'], ['2/6'])).toBe(false);
  });

  it('have no gap at the end of the archive', () => {
    expect(
      recoveryPaths(backup(2), { segments: segments('1/2', '1/3'), histories: NONE, gaps: [] })[0]?.gap,
    ).toBeNull();
  });

  it('do not exist if the backup lacks a segment that it needs', () => {
    expect(recoveryPaths(backup(2, 4), { segments: segments('1/2', '1/4', '1/5'), histories: NONE, gaps: [] })).toEqual(
      [],
    );
  });

  it('continue on a timeline that began after the backup, with the segment of the change in its version of the new timeline', () => {
    const stock = {
      segments: segments('1/2', '1/3', '1/4', '1/5', '2/4', '2/5', '2/6'),
      histories: new Map([[2, [endedIn(1, 4)]]]),
      gaps: [],
    };
    const paths = recoveryPaths(backup(2), stock);
    expect(paths.map(({ timeline, segments: all }) => [timeline, short(all)])).toEqual([
      [1, ['1/2', '1/3', '1/4', '1/5']],
      [2, ['1/2', '1/3', '2/4', '2/5', '2/6']],
    ]);
  });

  it('leave out a timeline that began before the backup was complete, or has no segments', () => {
    const stock = {
      segments: segments('1/2', '1/3', '1/4', '2/1', '2/2', '2/3', '2/4'),
      histories: new Map([
        [2, [endedIn(1, 1)]],
        [3, [endedIn(1, 4)]],
      ]),
      gaps: [],
    };
    expect(recoveryPaths(backup(2), stock).map(({ timeline }) => timeline)).toEqual([1]);
  });

  it('of a backup on a later timeline need no earlier timeline', () => {
    const stock = { segments: segments('2/5', '2/6'), histories: new Map([[2, [endedIn(1, 4)]]]), gaps: [] };
    const [path, ...more] = recoveryPaths(backup(5, 5, 2), stock);
    expect(more).toEqual([]);
    expect([path?.timeline, short(path?.segments ?? [])]).toEqual([2, ['2/5', '2/6']]);
  });
});

describe('the target of a recovery', () => {
  const range = (timeline: number, from: number, to: number): RestoreRange => ({
    ...{ timeline, from, to, segments: [], beganAt: null, gap: null },
  });
  // A server ran from 100 to 200, was restored to 150, and ran again from 250 to 300.
  const ranges = [range(1, 100, 200), range(2, 250, 300)];
  const chosen = (at: number | null) => {
    const target = chooseTarget(ranges, at);
    return target === null ? null : [target.range.timeline, target.at];
  };

  it('is the latest moment without a time', () => {
    expect(chosen(null)).toEqual([2, null]);
  });

  it('is on the timeline of the server that ran at that time, also if a restore has undone that time', () => {
    expect(chosen(180)).toEqual([1, 180]);
    expect(chosen(260)).toEqual([2, 260]);
  });

  it('is on the server that kept running, if a server on a restored copy has written to the same archive for a while', () => {
    const besides = [range(1, 100, 400), range(2, 250, 300)];
    const on = (at: number | null): number | undefined => chooseTarget(besides, at)?.range.timeline;
    expect([on(null), on(200), on(260), on(350), on(401)]).toEqual([1, 1, 2, 1, undefined]);
  });

  it('is the end of the log for the last time, because PostgreSQL stops only before a later transaction', () => {
    expect([chosen(200), chosen(300)]).toEqual([
      [1, null],
      [2, null],
    ]);
  });

  it('does not exist before, between and after the ranges', () => {
    expect([99, 225, 301].map(chosen)).toEqual([null, null, null]);
    expect(rangesText(ranges)).toBe(
      '1970-01-01T00:00:00.100Z to 1970-01-01T00:00:00.200Z, and 1970-01-01T00:00:00.250Z to 1970-01-01T00:00:00.300Z',
    );
  });
});
