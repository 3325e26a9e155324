import { expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../../limits.ts';
import { HTTP_LINGER_MAX_MS, Linger } from './http1-visitor.ts';

const { HTTP_LINGER_MS } = EDGE_LIMITS;

it('lasts as long as our last byte takes, and then a moment', () => {
  const linger = new Linger();
  linger.onBytes(10);
  expect([linger.saidAll, linger.isOver(1_000_000)]).toEqual([false, false]);
  linger.onSaidAll(1_000_000);
  expect([linger.saidAll, linger.isOver(1_000_000 + HTTP_LINGER_MS - 1)]).toEqual([true, false]);
  expect(linger.isOver(1_000_000 + HTTP_LINGER_MS)).toBe(true);
});

it('lasts longer for a visitor that still sends, but not for ever', () => {
  const linger = new Linger();
  linger.onSaidAll(0);
  for (let now = 0; now < HTTP_LINGER_MAX_MS; now += HTTP_LINGER_MS - 1) {
    expect(linger.isOver(now)).toBe(false);
    linger.onBytes(now);
  }
  expect(linger.isOver(HTTP_LINGER_MAX_MS)).toBe(true);
});
