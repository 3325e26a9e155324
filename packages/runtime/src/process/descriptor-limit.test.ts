import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { descriptorLimit } from './descriptor-limit.ts';

const limitsWith = (soft: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units\nMax open files            ${soft.padEnd(20)} 4096                 files\n`;

it.each([
  ['1200', 1200],
  ['unlimited', 1_048_576],
  ['4000000', 1_048_576],
  ['?', 8192],
])('the descriptor limit for a soft limit of %s is %i', (soft, limit) => {
  expect(descriptorLimit(limitsWith(soft))).toBe(limit);
});

it('the descriptor limit is that of the process, and without /proc the one that Node.js reports', () => {
  const hard = Number(execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }));
  const expected = Number.isNaN(hard) ? 1_048_576 : Math.min(hard, 1_048_576);
  expect(descriptorLimit()).toBe(expected);
  expect(descriptorLimit(null)).toBe(expected);
});
