import { describe, expect, it } from 'vitest';
import {
  FLOWS_OPENING_LATE_MS,
  FLOWS_OPENING_MAX,
  FLOWS_OPENING_MIN,
  FLOWS_OPENING_WINDOW_MS,
  FlowOpenings,
} from './flow-openings.rules.ts';

const MAX = FLOWS_OPENING_MAX;
const MIN = FLOWS_OPENING_MIN;
const LATE = FLOWS_OPENING_LATE_MS;

/** Begins `count` flows at once, numbered from `first`. */
const begin = (openings: FlowOpenings<number>, count: number, now: number, first = 0): void => {
  for (let n = 0; n < count; n += 1) openings.begun(first + n, now);
};

/** Creates the state of a client with a single answer so far, which took `answerMs` milliseconds. */
const known = (answerMs: number): FlowOpenings<number> => {
  const openings = new FlowOpenings<number>();
  openings.begun(-1, 0);
  openings.answered(-1, answerMs);
  return openings;
};

describe('a new flow', () => {
  it('may begin while the client answers about as fast as its best answer', () => {
    const openings = known(40);
    begin(openings, MIN, 1000);
    expect(openings.mayBegin(1000 + 40 + LATE)).toBe(true);
    expect(openings.mayBegin(1000 + 40 + LATE + 1)).toBe(false);
  });

  it('may begin again when the oldest waiting flow is answered or gone', () => {
    const openings = known(1);
    begin(openings, MIN, 1000);
    begin(openings, MIN, 1100, 100);
    expect(openings.mayBegin(1101)).toBe(false);
    for (let n = 0; n < MIN; n += 1) openings.answered(n, 1101);
    expect(openings.mayBegin(1101)).toBe(true);
    expect(openings.mayBegin(1200)).toBe(false);
    openings.gone(100);
    expect([openings.mayBegin(1200), openings.size]).toEqual([true, MIN - 1]);
  });

  it('may always begin while few flows wait, and never while very many do', () => {
    const openings = new FlowOpenings<number>();
    begin(openings, MIN - 1, 0);
    expect(openings.mayBegin(60_000)).toBe(true);
    begin(openings, MAX, 60_000, 100);
    expect(openings.mayBegin(60_000)).toBe(false);
  });

  it('may begin at a client with a still unknown answer time', () => {
    const openings = new FlowOpenings<number>();
    begin(openings, MAX - 1, 0);
    expect(openings.mayBegin(500)).toBe(true);
  });
});

it('a path that has become slower raises the expected answer time after a while', () => {
  const openings = known(1);
  for (let at = 0; at <= 3 * FLOWS_OPENING_WINDOW_MS; at += 1000) {
    openings.begun(at, at);
    openings.answered(at, at + 300);
  }
  begin(openings, MIN, 100_000);
  expect(openings.mayBegin(100_000 + 300)).toBe(true);
});
