import { expect, it } from 'vitest';
import {
  HTTP2_OUTBOUND_FULL_BYTES,
  HTTP2_OUTBOUND_MAX_BYTES,
  HTTP2_OUTBOUND_STALLED_MS,
  Http2Outbound,
  OutboundShare,
} from './http2-outbound.ts';

const setUp = () => {
  const session = { allOut: false, takenBytes: 0, isAllOut: () => session.allOut };
  const seen = { overruns: 0 };
  const outbound = new Http2Outbound(session, () => {
    seen.overruns += 1;
  });
  return { session, seen, outbound };
};

it('the outbound queue is full above its first limit until requests end, and overruns above its second', () => {
  const { outbound, seen } = setUp();
  const shares = Array.from({ length: 8 }, () => new OutboundShare());
  for (const share of shares) outbound.add(share, HTTP2_OUTBOUND_FULL_BYTES / 4);
  expect([outbound.isFull, outbound.queuedBytes]).toEqual([true, 2 * HTTP2_OUTBOUND_FULL_BYTES]);
  for (const share of shares.slice(0, 4)) outbound.release(share);
  expect(outbound.isFull).toBe(false);
  outbound.add(new OutboundShare(), HTTP2_OUTBOUND_MAX_BYTES - outbound.queuedBytes);
  expect(seen.overruns).toBe(0);
  outbound.add(new OutboundShare(), 1);
  expect(seen.overruns).toBe(1);
});

it('the outbound queue is empty once all bytes are out, and an old share releases no newer bytes', () => {
  const { outbound, session, seen } = setUp();
  const before = new OutboundShare();
  const since = new OutboundShare();
  outbound.add(before, HTTP2_OUTBOUND_MAX_BYTES);
  session.allOut = true;
  expect([outbound.isFull, outbound.queuedBytes]).toEqual([false, 0]);
  session.allOut = false;
  outbound.add(since, 1000);
  outbound.release(before);
  expect([outbound.queuedBytes, seen.overruns]).toEqual([1000, 0]);
  outbound.add(before, 500);
  outbound.release(since);
  expect(outbound.queuedBytes).toBe(500);
});

it('the outbound queue stalls only when it is full for long and no byte is taken', () => {
  const { outbound, session } = setUp();
  outbound.add(new OutboundShare(), HTTP2_OUTBOUND_FULL_BYTES + 1);
  expect([outbound.isStalled(0), outbound.isStalled(HTTP2_OUTBOUND_STALLED_MS - 1)]).toEqual([false, false]);
  session.takenBytes = 1;
  expect(outbound.isStalled(HTTP2_OUTBOUND_STALLED_MS)).toBe(false);
  expect(outbound.isStalled(2 * HTTP2_OUTBOUND_STALLED_MS)).toBe(true);
});
