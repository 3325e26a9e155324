// Read budgets per turn: large while only bulk data flows, small while small messages pass, and large again afterwards.
import { describe, expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import { SMALL_MESSAGES_FOR_MS, SmallMessages, TICK_READ_BYTES, TickReadBudget } from './tick-budget.ts';

const { TICK_READ_SHARED_BYTES } = MUX_LIMITS;

describe('small messages', () => {
  const passedAt = (small: SmallMessages, ...times: number[]): void => {
    for (const nowMs of times) {
      small.passed(64);
      small.areAbout(nowMs);
    }
  };

  it('count as a conversation from the second one on, and for a while after the last', () => {
    const small = new SmallMessages();
    expect(small.areAbout(1000)).toBe(false);
    passedAt(small, 1010, 1020);
    expect(small.areAbout(1020)).toBe(true);
    expect(small.areAbout(1020 + SMALL_MESSAGES_FOR_MS - 1)).toBe(true);
    expect(small.areAbout(1020 + SMALL_MESSAGES_FOR_MS)).toBe(false);
  });

  it('that are single or rare do not slow down bulk transfers', () => {
    const small = new SmallMessages();
    for (let nowMs = 0; nowMs < 10 * SMALL_MESSAGES_FOR_MS; nowMs += SMALL_MESSAGES_FOR_MS) {
      passedAt(small, nowMs);
      expect(small.areAbout(nowMs)).toBe(false);
    }
  });

  it('do not include pieces of many kilobytes', () => {
    const small = new SmallMessages();
    for (const nowMs of [0, 1, 2]) {
      small.passed(16 * 1024);
      expect(small.areAbout(nowMs)).toBe(false);
    }
  });
});

describe('the read budget of a turn', () => {
  const turnOf = (turn: TickReadBudget, bytes: number, nowMs: number): number => {
    let read = bytes;
    while (turn.goesOn(bytes, nowMs)) read += bytes;
    return read;
  };

  it('is large for bulk transfers, and small while small messages pass', () => {
    const small = new SmallMessages();
    const turn = new TickReadBudget(small);
    expect([turnOf(turn, 64 * 1024, 0), turn.isShared]).toEqual([TICK_READ_BYTES, false]);
    small.passed(64);
    expect([turnOf(turn, 64 * 1024, 0), turn.isShared]).toEqual([TICK_READ_BYTES, false]);
    small.passed(64);
    expect([turnOf(turn, 64 * 1024, 1), turn.isShared]).toEqual([TICK_READ_SHARED_BYTES, true]);
    expect(new TickReadBudget(new SmallMessages()).goesOn(TICK_READ_BYTES - 1, 0)).toBe(true);
    const later = 1 + SMALL_MESSAGES_FOR_MS;
    expect([turnOf(turn, 64 * 1024, later), turn.isShared]).toEqual([TICK_READ_BYTES, false]);
  });
});
