import { describe, expect, it } from 'vitest';
import { NoticePace } from './notice-pace.rules.ts';

const pace = (perSubject = 3, perHolder = 5) => new NoticePace<string>({ perSubject, perHolder });
const times = (count: number, act: () => boolean): number => Array.from({ length: count }, act).filter(Boolean).length;

/** Ends a second in which every count can be sent, and returns the counts. */
const counts = (of: NoticePace<string>): [string, number][] => {
  const told: [string, number][] = [];
  of.nextSecond((subject, unsent) => {
    told.push([subject, unsent]);
    return true;
  });
  return told;
};

describe('notices within one second', () => {
  it('are limited for each subject, and the rest are counted', () => {
    const one = pace();
    expect(times(1000, () => one.take('a', () => 'ann'))).toBe(3);
    expect(counts(one)).toEqual([['a', 997]]);
    expect(times(4, () => one.take('a', () => 'ann'))).toBe(3);
    expect(counts(one)).toEqual([['a', 1]]);
  });

  it('are limited for each holder, separately from other holders', () => {
    const one = pace();
    const sent = ['a', 'b', 'c'].map((subject) => times(10, () => one.take(subject, () => 'ann')));
    expect(sent).toEqual([3, 2, 0]);
    expect(times(10, () => one.take('z', () => 'zoe'))).toBe(3);
  });

  it('leave no count and no memory if every event had its notice', () => {
    const one = pace();
    one.take('a', () => 'ann');
    expect(counts(one)).toEqual([]);
    expect(one.size).toBe(0);
  });

  it('count a notice that was not sent, and keep an undelivered count for the next second', () => {
    const one = pace();
    one.take('a', () => 'ann');
    one.notSent('a');
    one.nextSecond(() => false);
    expect(times(4, () => one.take('a', () => 'ann'))).toBe(3);
    expect(counts(one)).toEqual([['a', 2]]);
    expect(one.size).toBe(0);
  });

  it('need one lookup of the holder per subject', () => {
    const one = pace();
    let asked = 0;
    const holderOf = (): string => {
      asked += 1;
      return 'ann';
    };
    times(100, () => one.take('a', holderOf));
    expect(asked).toBe(1);
  });
});
