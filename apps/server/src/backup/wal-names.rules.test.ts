import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareSegments,
  nextSegment,
  parseArchivedName,
  parseHistory,
  parseLsn,
  parseSegment,
  parseWalName,
  reachFrom,
  type Segment,
  segmentAt,
  segmentBefore,
  segmentName,
} from './wal-names.rules.ts';

const segmentOf = (name: string): Segment => parseSegment(name) as Segment;

describe('names of segments', () => {
  it('are parsed, and refused if PostgreSQL never writes them', () => {
    expect(parseSegment('000000010000000000000003')).toEqual({ timeline: 1, number: 3 });
    expect(parseSegment('0000000A00000001000000FF')).toEqual({ timeline: 10, number: 511 });
    for (const wrong of [
      '',
      '00000001000000000000000',
      '000000010000000000000100',
      '000000000000000000000001',
      '00000001000000000000000g',
      '00000001000000000000000a',
      '000000010000000000000003.gz',
    ]) {
      expect([wrong, parseSegment(wrong)]).toEqual([wrong, null]);
    }
  });

  it('round-trip, and the next segment sorts directly behind', () => {
    const segments = fc.record({
      timeline: fc.integer({ min: 1, max: 0xffff_ffff }),
      number: fc.integer({ min: 0, max: 2 ** 40 - 2 }),
    });
    fc.assert(
      fc.property(segments, (segment) => {
        expect(parseSegment(segmentName(segment))).toEqual(segment);
        const next = nextSegment(segment);
        expect(compareSegments(segment, next)).toBeLessThan(0);
        // Names of one timeline sort like their segments, as everywhere in PostgreSQL.
        expect(segmentName(segment) < segmentName(next)).toBe(true);
      }),
    );
  });

  it('the segment after the last of a log is the first of the next log', () => {
    expect(segmentName(nextSegment(segmentOf('0000000100000000000000FF')))).toBe('000000010000000100000000');
  });

  it('segments sort by position first, because a later timeline continues at an earlier position', () => {
    const names = ['000000020000000000000004', '000000010000000000000005', '000000010000000000000004'];
    const sorted = names.map(segmentOf).sort(compareSegments).map(segmentName);
    expect(sorted).toEqual(['000000010000000000000004', '000000020000000000000004', '000000010000000000000005']);
  });
});

describe('log positions', () => {
  it('belong to a segment, and a position at a segment boundary needs only the segment before', () => {
    expect(parseLsn('0/16B3748')).toBe(0x16b3748n);
    expect(parseLsn('1/0')).toBe(0x1_0000_0000n);
    for (const wrong of ['', '0/', '/1', '0/16B3748 ', '123456789/0']) expect(parseLsn(wrong)).toBeNull();
    const boundary = parseLsn('1/3000000') as bigint;
    expect(segmentName(segmentAt(boundary, 1))).toBe('000000010000000100000003');
    expect(segmentName(segmentBefore(boundary, 1))).toBe('000000010000000100000002');
    expect(segmentName(segmentBefore(boundary + 1n, 1))).toBe('000000010000000100000003');
  });
});

describe('files of an archive', () => {
  it('are recognized by their names, and nothing else is', () => {
    const segment = { timeline: 1, number: 3 };
    const name = segmentName(segment);
    expect(parseWalName(name)).toEqual({ kind: 'segment', segment });
    expect(parseWalName(`${name}.partial`)).toEqual({ kind: 'partial', segment });
    expect(parseWalName(`${name}.00000028.backup`)).toEqual({ kind: 'label', segment });
    expect(parseWalName('00000002.history')).toEqual({ kind: 'history', timeline: 2 });
    expect(parseArchivedName(`${name}.gz`)).toEqual({ kind: 'segment', segment });
    expect(parseArchivedName(`${name}.gap`)).toEqual({ kind: 'gap', segment });
    for (const wrong of [name, '.gap', `${name}.gz.new`, '.gz', `../${name}.gz`, `${name}.part.gz`, `${name}/x.gz`]) {
      expect([wrong, parseArchivedName(wrong)]).toEqual([wrong, null]);
    }
  });
});

describe('how far an archive reaches', () => {
  const range = (timeline: number, from: number, to: number): Segment[] =>
    Array.from({ length: to - from + 1 }, (_, at) => ({ timeline, number: from + at }));
  const at = (number: number): bigint => BigInt(number) * 16n * 1024n * 1024n + 5n;

  it('ends before the first missing segment', () => {
    const start = { timeline: 1, number: 10 };
    expect(reachFrom(start, range(1, 5, 20))).toEqual({
      timeline: 1,
      last: { timeline: 1, number: 20 },
      next: null,
    });
    expect(reachFrom(start, [...range(1, 5, 14), ...range(1, 16, 20)])).toEqual({
      timeline: 1,
      last: { timeline: 1, number: 14 },
      next: 16,
    });
    expect(reachFrom(start, range(1, 11, 20))).toEqual({ timeline: 1, last: null, next: 11 });
    expect(reachFrom(start, [])).toEqual({ timeline: 1, last: null, next: null });
  });

  it('follows the newest timeline that branched off after the start, and ignores the past that it replaced', () => {
    const histories = new Map([[2, [{ timeline: 1, endedAt: at(50) }]]]);
    const segments = [...range(1, 10, 100), ...range(2, 50, 90)];
    expect(reachFrom({ timeline: 1, number: 45 }, segments, histories)).toEqual({
      timeline: 2,
      last: { timeline: 2, number: 90 },
      next: null,
    });
    // The start is in the part of timeline 1 that the restore has replaced, so timeline 2 cannot be reached.
    expect(reachFrom({ timeline: 1, number: 80 }, segments, histories)).toEqual({
      timeline: 1,
      last: { timeline: 1, number: 100 },
      next: null,
    });
    expect(reachFrom({ timeline: 2, number: 60 }, segments, histories).last).toEqual({ timeline: 2, number: 90 });
  });

  it('follows several branches, read from history files', () => {
    const text = '1\t0/3200005\tbefore 2026-11-19\n\n2\t0/4600005\tno recovery target specified\n# a comment\n';
    const ancestors = parseHistory(text);
    expect(ancestors).toEqual([
      { timeline: 1, endedAt: 0x3200005n },
      { timeline: 2, endedAt: 0x4600005n },
    ]);
    const histories = new Map([
      [2, ancestors.slice(0, 1)],
      [3, ancestors],
    ]);
    const segments = [...range(1, 1, 9), ...range(2, 3, 8), ...range(3, 4, 6)];
    const { timeline, last } = reachFrom({ timeline: 1, number: 2 }, segments, histories);
    expect([timeline, last]).toEqual([3, { timeline: 3, number: 6 }]);
  });
});
