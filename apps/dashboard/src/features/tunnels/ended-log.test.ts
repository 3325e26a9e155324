import type { TunnelLogEntry } from '@tunnel/contract';
import { describe, expect, it } from 'vitest';
import { departed, PAGE_SIZE, rowsOf, withEntry, withNewest, withOlder } from './ended-log.ts';
import { tunnelEntry as entry } from './tunnel-entry.fixture.ts';

const span = (from: number, down: number): TunnelLogEntry[] =>
  Array.from({ length: down }, (_, index) => entry(from - index));
const numbers = (entries: readonly TunnelLogEntry[]): number[] => entries.map(({ id }) => Number(id.slice(3)));

describe('the log of ended tunnels', () => {
  it('is complete when the first page is not full', () => {
    expect(withNewest(undefined, span(5, 3))).toMatchObject({ isWhole: true });
    expect(withNewest(undefined, span(500, PAGE_SIZE)).isWhole).toBe(false);
  });

  it('keeps tunnels after newer tunnels have pushed them off the first page', () => {
    const log = withNewest(withNewest(undefined, span(500, PAGE_SIZE)), span(530, PAGE_SIZE));
    expect(numbers(log.entries)).toEqual(numbers(span(530, 130)));
  });

  it('grows with older pages, even if they overlap', () => {
    const log = withNewest(undefined, span(500, PAGE_SIZE));
    const more = withOlder(log, span(402, PAGE_SIZE));
    expect([numbers(more.entries), more.isWhole]).toEqual([numbers(span(500, 198)), false]);
    const all = withOlder(more, span(303, 3));
    expect([all.entries.length, all.isWhole]).toEqual([200, true]);
  });

  it('starts over when there is a gap', () => {
    const log = withNewest(withNewest(undefined, span(500, PAGE_SIZE)), span(900, PAGE_SIZE));
    expect(numbers(log.entries)).toEqual(numbers(span(900, PAGE_SIZE)));
  });

  it('stays the same object when nothing has changed', () => {
    const log = withNewest(undefined, span(500, PAGE_SIZE));
    expect(withNewest(log, span(500, PAGE_SIZE))).toBe(log);
    const [first, second] = withNewest(log, [entry(500, { request_count: 7 }), ...span(499, 99)]).entries;
    expect([first?.request_count, second]).toEqual([7, log.entries[1]]);
    expect(second).toBe(log.entries[1]);
  });

  it('inserts a tunnel that has just ended if its place is known', () => {
    const log = withNewest(
      undefined,
      span(500, PAGE_SIZE)
        .filter((_, index) => index !== 50)
        .concat(entry(400)),
    );
    expect(numbers(withEntry(log, entry(450)).entries)).toEqual(numbers(span(500, 101)));
    expect(withEntry(log, entry(2))).toBe(log);
    expect(withEntry(log, entry(450, { unregistered_at: null }))).toBe(log);
  });
});

it('live tunnels come first, and a tunnel that was reopened is listed once', () => {
  const live = [entry(9, { unregistered_at: null }), entry(2, { unregistered_at: null })];
  expect(numbers(rowsOf(live, [entry(8), entry(2), entry(1)]))).toEqual([9, 2, 8, 1]);
});

it('departed tunnels were live before and are no longer', () => {
  expect(departed([entry(1), entry(2)], [entry(2), entry(3)])).toEqual([entry(1).id]);
});
