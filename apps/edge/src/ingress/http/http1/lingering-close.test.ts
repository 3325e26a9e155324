import { expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../../limits.ts';
import { HTTP_LINGER_MAX_MS, LingeringClose } from './http1-visitor.ts';

const { HTTP_LINGER_MS } = EDGE_LIMITS;

it('a lingering close ends a moment after the edge has sent its last byte', () => {
  const lingering = new LingeringClose();
  lingering.onBytes(10);
  expect([lingering.hasSentAll, lingering.isOver(1_000_000)]).toEqual([false, false]);
  lingering.onSentAll(1_000_000);
  expect([lingering.hasSentAll, lingering.isOver(1_000_000 + HTTP_LINGER_MS - 1)]).toEqual([true, false]);
  expect(lingering.isOver(1_000_000 + HTTP_LINGER_MS)).toBe(true);
});

it('a lingering close lasts longer for a visitor that still sends, up to a maximum', () => {
  const lingering = new LingeringClose();
  lingering.onSentAll(0);
  for (let now = 0; now < HTTP_LINGER_MAX_MS; now += HTTP_LINGER_MS - 1) {
    expect(lingering.isOver(now)).toBe(false);
    lingering.onBytes(now);
  }
  expect(lingering.isOver(HTTP_LINGER_MAX_MS)).toBe(true);
});
