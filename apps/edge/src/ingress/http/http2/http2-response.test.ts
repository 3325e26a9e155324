import { EventEmitter, once } from 'node:events';
import { connect, constants, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
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

it.each([
  { status: 204, body: '' },
  { status: 403, body: 'no' },
])(
  'a response of the edge with status $status arrives before the rest of the request is dropped',
  async ({ status, body }) => {
    const outbound = new Http2Outbound({ isAllOut: () => false, takenBytes: 0 }, () => {});
    const server = createServer().on('stream', (stream) => {
      const response = new Http2Response(stream, outbound, () => {}, { abandon: () => {} });
      response.reply({ response: { status, headers: [], body } }, null, null);
      response.end(true);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    try {
      const request = session.request({ ':method': 'POST' }).on('error', () => {});
      request.write('the beginning');
      let told: unknown;
      let text = '';
      request.on('response', (headers) => {
        told = headers[':status'];
      });
      request.on('data', (chunk: Buffer) => {
        text += String(chunk);
      });
      await once(request, 'close');
      expect([told, text, request.rstCode]).toEqual([status, body, constants.NGHTTP2_NO_ERROR]);
    } finally {
      session.destroy();
      server.close();
    }
  },
);
