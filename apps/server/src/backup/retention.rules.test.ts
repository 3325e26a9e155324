import { describe, expect, it } from 'vitest';
import { type KeptBackup, planRetention } from './retention.rules.ts';
import { segmentName } from './wal-names.rules.ts';

const seg = (number: number, timeline = 1): string => segmentName({ timeline, number });
const wal = (...numbers: number[]): string[] => numbers.map((number) => `${seg(number)}.gz`);
const backup = (day: number, start: number | null): KeptBackup => ({
  name: `202611${String(day).padStart(2, '0')}T030000Z`,
  walStart: start === null ? null : seg(start),
});
const names = (...days: number[]): string[] => days.map((day) => backup(day, null).name);

describe('retention', () => {
  it('keeps the newest backups, and the log from the start of the oldest of them', () => {
    const stored = [backup(1, 10), backup(2, 20), backup(3, 30), backup(4, 40)];
    expect(planRetention(stored, wal(9, 10, 19, 20, 29, 30, 31, 45), 2)).toEqual({
      backups: names(1, 2),
      wal: wal(9, 10, 19, 20, 29),
    });
  });

  it('deletes nothing while there are not too many backups, and log that is older than the oldest', () => {
    expect(planRetention([backup(1, 10), backup(2, 20)], wal(9, 10, 25), 2)).toEqual({ backups: [], wal: wal(9) });
  });

  it('keeps all log without a backup, because the first may be in progress', () => {
    expect(planRetention([], wal(1, 2, 3), 1)).toEqual({ backups: [], wal: [] });
  });

  it('orders backups of the same second by their number, and not by their text', () => {
    const at = '20261101T030000Z';
    const stored = ['', '-2', '-10'].map((suffix, index) => ({ name: at + suffix, walStart: seg(index) }));
    expect(planRetention(stored, [], 1).backups).toEqual([at, `${at}-2`]);
  });

  it('does not count an unreadable backup, keeps all log beside it, and deletes it once it is older than all kept backups', () => {
    const stored = [backup(1, 10), backup(2, null), backup(3, 30)];
    expect(planRetention(stored, wal(5, 10, 30), 2)).toEqual({ backups: [], wal: [] });
    expect(planRetention([...stored, backup(4, 40)], wal(5, 10, 30), 2)).toEqual({
      backups: names(1, 2),
      wal: wal(5, 10),
    });
    expect(planRetention([backup(1, null), backup(2, null)], wal(5), 1)).toEqual({ backups: [], wal: [] });
  });

  it('compares log across timelines by its position, and keeps histories, other files and labels that are needed', () => {
    const files = [
      '00000002.history.gz',
      `${seg(19)}.partial.gz`,
      `${seg(20)}.partial.gz`,
      `${seg(19)}.00000028.backup.gz`,
      `${seg(19, 2)}.gz`,
      `${seg(20, 2)}.gz`,
      `${seg(18)}.gap`,
      `${seg(21, 2)}.gap`,
      `${seg(3)}.gz.new`,
      'notes.txt',
    ];
    // After a restore to the past, the newer backup starts at an earlier position.
    const stored = [backup(1, 80), { ...backup(2, 20), walStart: seg(20, 2) }];
    expect(planRetention(stored, files, 2).wal).toEqual([
      `${seg(19)}.partial.gz`,
      `${seg(19)}.00000028.backup.gz`,
      `${seg(19, 2)}.gz`,
      `${seg(18)}.gap`,
    ]);
  });
});
