import { WIRE_LIMITS } from '@tunnel/protocol';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { CarrierTokens } from './carrier-tokens.ts';

const setUp = () => {
  const clock = new FakeClock();
  return { clock, tokens: new CarrierTokens<{ name: string }>(clock), a: { name: 'a' }, b: { name: 'b' } };
};

it('is good once, for the one it was made for', () => {
  const { tokens, a, b } = setUp();
  const [ofA = ''] = tokens.issue(a, 2);
  const [ofB = ''] = tokens.issue(b, 1);
  expect(tokens.redeem(ofB)).toBe(b);
  expect(tokens.redeem(ofA)).toBe(a);
  expect(tokens.redeem(ofA)).toBeNull();
  expect(tokens.redeem('never-made')).toBeNull();
});

it('is good for 30 s, and leaves no trace after that', async () => {
  const { clock, tokens, a } = setUp();
  const [first = '', second = ''] = tokens.issue(a, 3);
  await clock.advance(29_999);
  expect(tokens.redeem(first)).toBe(a);
  await clock.advance(1);
  expect(tokens.redeem(second)).toBeNull();
  tokens.dropExpired();
  expect(tokens.size).toBe(0);
});

it('keeps a bounded number a session: the oldest give way', () => {
  const { tokens, a, b } = setUp();
  const [ofB = ''] = tokens.issue(b, 1);
  const [oldest = ''] = tokens.issue(a, 16);
  for (let n = 0; n < 10; n += 1) tokens.issue(a, 16);
  expect(tokens.size).toBe(WIRE_LIMITS.CARRIER_TOKENS_OUTSTANDING_MAX + 1);
  expect(tokens.redeem(oldest)).toBeNull();
  expect(tokens.redeem(ofB)).toBe(b);
});

it('takes all of a session back at once', () => {
  const { tokens, a, b } = setUp();
  const [ofA = ''] = tokens.issue(a, 4);
  tokens.issue(b, 1);
  tokens.revokeAll(a);
  expect(tokens.redeem(ofA)).toBeNull();
  expect(tokens.size).toBe(1);
});
