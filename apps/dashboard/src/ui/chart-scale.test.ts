import { expect, it } from 'vitest';
import { isWritten, linesOf } from './chart-scale.ts';

it.each([
  [0, [1]],
  [1, [1]],
  [3, [1, 2, 3]],
  [7, [2, 4, 6, 8]],
  [120, [50, 100, 150]],
  [1000, [500, 1000]],
  [9e15, [5e15, 1e16]],
])('a chart up to %d has grid lines at %j', (most, lines) => {
  expect(linesOf(most)).toEqual(lines);
});

it('a chart labels days at equal intervals, and always the last day', () => {
  const written = (count: number, texts: number): number[] =>
    Array.from({ length: count }, (_, index) => index).filter((index) => isWritten(index, count, texts));
  expect(written(30, 5)).toEqual([5, 11, 17, 23, 29]);
  expect(written(1, 5)).toEqual([0]);
  expect(written(3, 5)).toEqual([0, 1, 2]);
});
