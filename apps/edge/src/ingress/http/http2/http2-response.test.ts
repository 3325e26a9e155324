import { EventEmitter } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { expect, it } from 'vitest';
import { Http2Outbound } from './http2-outbound.ts';
import { Http2Response } from './http2-response.ts';

it('a response of the edge counts with all header fields until it is out, including fields added by rules', () => {
  const state = { destroyed: false, closed: false, headersSent: false, writableEnded: false };
  const stream = Object.assign(new EventEmitter(), state, { respond: () => {}, write: () => true });
  const outbound = new Http2Outbound({ isAllOut: () => false, takenBytes: 0 }, () => {});
  const response = new Http2Response(stream as unknown as ServerHttp2Stream, outbound, () => {}, { abandon: () => {} });
  const own = { status: 403, headers: [['x-large', 'x'.repeat(40_000)]], body: 'no' } as const;
  expect(response.reply({ response: own }, null, null)).toBe(true);
  expect(outbound.queuedBytes).toBeGreaterThan(40_000);
  response.onAllOut();
  expect(outbound.queuedBytes).toBe(0);
});
