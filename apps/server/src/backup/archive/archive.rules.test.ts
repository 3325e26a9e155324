import { describe, expect, it } from 'vitest';
import { parseWalName, type WalFile } from '../wal-names.rules.ts';
import {
  backlogBytes,
  isBeforeArchive,
  isBehindGap,
  retryDelayMs,
  spoolOrder,
  waitingSegments,
} from './archive.rules.ts';

const SEGMENT = (number: number, timeline = 1): string =>
  `${String(timeline).padStart(8, '0')}00000000${number.toString(16).toUpperCase().padStart(8, '0')}`;

describe('the order of archiving', () => {
  it('is histories, then the order of the log across timelines; other names are ignored', () => {
    const names = [
      SEGMENT(5),
      `${SEGMENT(6)}.part`,
      'switched-on',
      'begins-after',
      SEGMENT(4, 2),
      '00000003.history',
      `${SEGMENT(4)}.partial`,
      SEGMENT(3),
      `${SEGMENT(3)}.00000028.backup`,
      '00000002.history',
    ];
    expect(spoolOrder(names).map(({ name }) => name)).toEqual([
      '00000002.history',
      '00000003.history',
      SEGMENT(3),
      `${SEGMENT(3)}.00000028.backup`,
      `${SEGMENT(4)}.partial`,
      SEGMENT(4, 2),
      SEGMENT(5),
    ]);
  });
});

describe('the log that waits for the archive', () => {
  it('is the spool, and the segments that PostgreSQL could not hand over', () => {
    const status = [`${SEGMENT(1)}.done`, `${SEGMENT(2)}.ready`, `${SEGMENT(3)}.ready`, '00000002.history.ready'];
    expect(waitingSegments(status).map(({ name }) => name)).toEqual(['00000002.history', SEGMENT(2), SEGMENT(3)]);
    expect(backlogBytes(100, status)).toBe(100 + 2 * 16 * 1024 * 1024);
  });
});

describe('segments from before the archive was switched on', () => {
  it('are recognized by their number, and histories always belong to the archive', () => {
    const file = (name: string): WalFile => parseWalName(name) as WalFile;
    const seventh = { timeline: 1, number: 7 };
    expect(isBeforeArchive(file(SEGMENT(7)), seventh)).toBe(true);
    expect(isBeforeArchive(file(SEGMENT(7, 2)), seventh)).toBe(true);
    expect(isBeforeArchive(file(SEGMENT(8)), seventh)).toBe(false);
    expect(isBeforeArchive(file(SEGMENT(1)), null)).toBe(false);
    expect(isBeforeArchive(file('00000002.history'), seventh)).toBe(false);
  });

  it('cannot be reached by a backup that starts before them, or on a timeline that a restore has replaced', () => {
    const after = { timeline: 2, number: 7 };
    expect(isBehindGap({ timeline: 2, number: 7 }, after)).toBe(true);
    expect(isBehindGap({ timeline: 2, number: 8 }, after)).toBe(false);
    expect(isBehindGap({ timeline: 1, number: 80 }, after)).toBe(true);
    expect(isBehindGap({ timeline: 3, number: 8 }, after)).toBe(false);
    expect(isBehindGap({ timeline: 1, number: 1 }, null)).toBe(false);
  });
});

it('retries wait longer after each failure, but at most 30 s', () => {
  expect([1, 2, 3, 5, 6, 100].map(retryDelayMs)).toEqual([1000, 2000, 4000, 16_000, 30_000, 30_000]);
});
