import { expect, it } from 'vitest';
import {
  agoText,
  bytesText,
  durationText,
  latencyText,
  momentText,
  moneyText,
  monthText,
  nextMonthText,
  percentText,
  plural,
  shortCountText,
  utcDateText,
  utcDayText,
  utcMomentText,
} from './format.ts';

it.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [99_960, '100 kB'],
  [999_960, '1.0 MB'],
  [48_201_733, '48.2 MB'],
  [30_000_000_000, '30.0 GB'],
  [Number.MAX_SAFE_INTEGER, '9.0 PB'],
])('%i bytes are shown as %s', (bytes, text) => expect(bytesText(bytes)).toBe(text));

it.each([
  [0, '0'],
  [12_345, '12,345'],
  [1_234_567, '1.2M'],
])('the count %i is shown as %s', (count, text) => expect(shortCountText(count)).toBe(text));

it.each([
  [0, '$0.00'],
  [5, '$0.05'],
  [300, '$3.00'],
  [123_456, '$1,234.56'],
])('%i cents are shown as %s', (cents, text) => expect(moneyText(cents)).toBe(text));

it.each([
  [59_999, '59 s'],
  [61_000, '1 min 1 s'],
  [7_500_000, '2 h 5 min'],
  [90_000_000, '1 d 1 h'],
  [-5, '0 s'],
])('a duration of %i ms is shown as %s', (ms, text) => expect(durationText(ms)).toBe(text));

it.each([
  [1.234, '1.2 ms'],
  [250.4, '250 ms'],
  [1500, '1.50 s'],
])('a latency of %d ms is shown as %s', (ms, text) => expect(latencyText(ms)).toBe(text));

it.each([
  [0, 'just now'],
  [-60_000, 'just now'],
  [42_000, '42 s ago'],
  [180_000, '3 min ago'],
  [7_200_000, '2 h ago'],
  [3 * 86_400_000, '3 d ago'],
  [30 * 86_400_000, '16 Oct 2026'],
])('a time %i ms ago is shown as %s', (past, text) => {
  const now = Date.UTC(2026, 10, 15, 12);
  expect(agoText(now - past, now)).toBe(text);
});

it('percentages, days and plurals are formatted', () => {
  expect([percentText(0), percentText(0.004), percentText(1 / 3), percentText(Number.NaN)]).toEqual([
    '0 %',
    '0.4 %',
    '33 %',
    '0 %',
  ]);
  expect(utcDayText(Date.UTC(2030, 0, 31))).toBe('31 Jan');
  expect([plural(1, 'member'), plural(0, 'member'), plural(2, 'key')]).toEqual(['1 member', '0 members', '2 keys']);
});

it('a time is shown in the local time zone, and in UTC next to it', () => {
  const at = Date.UTC(2026, 10, 16, 8, 14, 5);
  expect(utcMomentText(at)).toBe('16 Nov 2026, 08:14:05 UTC');
  const local = new Date(at);
  expect(momentText(at)).toContain(`${String(local.getHours()).padStart(2, '0')}:14:05`);
});

it('months follow UTC', () => {
  const lastMoment = Date.UTC(2030, 11, 31, 23, 59, 59);
  expect([monthText(lastMoment), nextMonthText(lastMoment)]).toEqual(['December 2030', '1 January 2031']);
  expect(utcDateText(Date.UTC(2031, 0, 1))).toBe('1 January 2031');
});
