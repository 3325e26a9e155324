import { describe, expect, it } from 'vitest';
import { backupDue, backupLine, lastFinished, type ScheduleFacts } from './schedule.rules.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOW = Date.UTC(2026, 10, 19, 3);

const facts = (more: Partial<ScheduleFacts> = {}): ScheduleFacts => ({
  everyMs: 24 * HOUR,
  finishedAt: [NOW - 50 * HOUR, NOW - 3 * HOUR],
  hasGap: false,
  failures: 0,
  sinceFailureMs: 0,
  sinceGapBackupMs: Number.POSITIVE_INFINITY,
  ...more,
});

describe('a scheduled backup is due', () => {
  it('at once if there is none, and the interval after the newest finished backup', () => {
    expect(backupDue(facts({ finishedAt: [] }), NOW)).toBe('first');
    expect(backupDue(facts(), NOW)).toBeNull();
    expect(backupDue(facts(), NOW + 21 * HOUR - 1)).toBeNull();
    expect(backupDue(facts(), NOW + 21 * HOUR)).toBe('interval');
    expect(backupDue(facts(), NOW + 900 * HOUR)).toBe('interval');
  });

  it('never if backups are taken only by command', () => {
    for (const more of [{ finishedAt: [] }, { hasGap: true }, {}]) {
      expect(backupDue(facts({ everyMs: null, ...more }), NOW + 900 * HOUR)).toBeNull();
    }
  });

  it('at once after a gap in the log, but not again and again if the gap does not end', () => {
    expect(backupDue(facts({ hasGap: true }), NOW)).toBe('gap');
    expect(backupDue(facts({ hasGap: true, sinceGapBackupMs: 10 * MINUTE - 1 }), NOW)).toBeNull();
    expect(backupDue(facts({ hasGap: true, sinceGapBackupMs: 10 * MINUTE }), NOW)).toBe('gap');
  });

  it('again after a failure: a minute later, then with growing pauses of at most an hour', () => {
    const due = (failures: number, sinceFailureMs: number) =>
      backupDue(facts({ finishedAt: [], failures, sinceFailureMs }), NOW);
    expect([due(1, MINUTE - 1), due(1, MINUTE)]).toEqual([null, 'first']);
    expect([due(3, 4 * MINUTE - 1), due(3, 4 * MINUTE)]).toEqual([null, 'first']);
    expect([due(50, HOUR - 1), due(50, HOUR)]).toEqual([null, 'first']);
  });

  it('even if an older backup was made with a clock that was ahead', () => {
    const finishedAt = [NOW + 9000 * HOUR];
    expect(backupDue(facts({ finishedAt }), NOW)).toBe('first');
    expect(lastFinished([...finishedAt, NOW - HOUR], NOW)).toBe(NOW - HOUR);
    expect(lastFinished([NOW + MINUTE], NOW)).toBe(NOW + MINUTE);
  });
});

it('the line at the start says where the backups stand', () => {
  const line = (lastAt: number | null, everyMs: number | null = HOUR) =>
    backupLine({ isOn: true, everyMs, lastAt }, NOW);
  expect(line(NOW - 3 * HOUR - MINUTE)).toBe('backup: last 3 h ago');
  expect(line(NOW + MINUTE)).toBe('backup: last 0 min ago');
  expect(line(NOW - 59 * MINUTE)).toBe('backup: last 59 min ago');
  expect(line(NOW - 47 * HOUR)).toBe('backup: last 47 h ago');
  expect(line(NOW - 49 * HOUR)).toBe('backup: last 2 days ago');
  expect(line(null)).toBe('backup: none yet, the first one begins now');
  expect(line(null, null)).toBe('backup: none yet, take one with `tunnel-server backup create`');
  expect(backupLine({ isOn: false, everyMs: HOUR, lastAt: null }, NOW)).toBe('backup: off, see docs/backup.md');
});
