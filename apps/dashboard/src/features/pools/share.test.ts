import { expect, it } from 'vitest';
import { servedText, sharesOf, shareText } from './share.ts';

const counted = (...counts: number[]) => counts.map((request_count) => ({ request_count }));

it('shares are parts of what all members have served', () => {
  expect(sharesOf(counted(30, 10, 0))).toEqual([0.75, 0.25, 0]);
});

it('nothing served: no shares, and no division by zero', () => {
  expect(sharesOf(counted(0, 0))).toEqual([0, 0]);
  expect(sharesOf([])).toEqual([]);
});

it('says what is counted', () => {
  expect([servedText(1, 'http'), servedText(1234, 'http')]).toEqual(['1 request', '1,234 requests']);
  expect([servedText(1, 'tcp'), servedText(2, 'tcp')]).toEqual(['1 connection', '2 connections']);
  expect(shareText(0.75, 30, 'tcp')).toBe('75 % of what the pool has served: 30 connections');
});
