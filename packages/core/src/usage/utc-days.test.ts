import { describe, expect, it } from 'vitest';
import { lastUtcDays, utcDay } from './utc-days.ts';

describe('days in UTC', () => {
  it('change at midnight', () => {
    expect(utcDay(Date.UTC(2030, 1, 28, 23, 59, 59, 999))).toBe('2030-02-28');
    expect(utcDay(Date.UTC(2030, 2, 1))).toBe('2030-03-01');
  });

  it('are counted back from today, oldest first, over months, leap days and clock changes', () => {
    expect(lastUtcDays(Date.UTC(2028, 2, 1, 12), 3)).toEqual(['2028-02-28', '2028-02-29', '2028-03-01']);
    expect(lastUtcDays(Date.UTC(2030, 0, 1), 1)).toEqual(['2030-01-01']);
    const ninety = lastUtcDays(Date.UTC(2030, 4, 1, 0, 0, 1), 90);
    expect(new Set(ninety).size).toBe(90);
    expect([ninety[0], ninety.at(-1)]).toEqual(['2030-02-01', '2030-05-01']);
  });
});
