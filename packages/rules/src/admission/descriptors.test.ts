import { expect, it } from 'vitest';
import { connectionTotal, shareLimits, spareDescriptors } from './descriptors.ts';

it.each([
  [1200, 0, 1072, false],
  [20_000, 0, 18_000, false],
  [20_000, 500, 500, false],
  [1200, 5000, 1072, true],
  [64, 0, 1, false],
])(
  'of %i descriptors, with connections_total %i, %i may serve connections',
  (descriptors, configured, total, isOver) => {
    expect(connectionTotal(descriptors, configured)).toEqual({ total, isOverDescriptors: isOver });
  },
);

it.each([
  [1200, 1072, 0],
  [20_000, 18_000, 1872],
  [1200, 500, 572],
  [64, 1, 0],
])('of %i descriptors with %i for connections, %i are spare', (descriptors, total, spare) => {
  expect(spareDescriptors(descriptors, total)).toBe(spare);
});

it('visitors get 70 % of the connections, control 20 % and APIs 10 %, each at least one', () => {
  expect(shareLimits(1072)).toEqual({ visitors: 750, control: 214, api: 107 });
  expect(shareLimits(1)).toEqual({ visitors: 1, control: 1, api: 1 });
});
