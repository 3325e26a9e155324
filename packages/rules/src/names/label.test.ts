import { expect, it } from 'vitest';
import { isLabel } from './label.ts';

it.each(['a', '7', 'shop', 'my-shop', 'x--1', 'a'.repeat(63)])('%s is a DNS label', (text) => {
  expect(isLabel(text)).toBe(true);
});

it.each(['', '-a', 'a-', '-', 'a.b', 'A', 'ü', 'a_b', 'a b', 'a\n', 'a'.repeat(64)])(
  '%j is not a DNS label',
  (text) => {
    expect(isLabel(text)).toBe(false);
  },
);
