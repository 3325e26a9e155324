// An abandoned upload while a carrier still sends from the memory into which the upload was read.

import * as net from 'node:net';
import { createCarrier, MemoryBudget, MuxSession } from '@tunnel/mux';
import { encodeCredit, FRAME, FrameParser, WIRE_LIMITS, writeFrameHeader } from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { deterministicBytes, eventually, FakeClock, hashOf, rethrow, socketPair } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { newHttpTunnel, startIngress } from '../http.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const BODY = deterministicBytes(30_000_000, 7);
const HEAD = `POST / HTTP/1.1\r\nHost: web.edge.test\r\nContent-Length: ${BODY.length}\r\n\r\n`;
const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');

const dataFrame = (streamId: number, payload: Buffer): Buffer => {
  const frame = Buffer.alloc(WIRE_LIMITS.FRAME_HEADER_BYTES + payload.length);
  writeFrameHeader(frame, 0, FRAME.DATA, payload.length, streamId);
  frame.set(payload, WIRE_LIMITS.FRAME_HEADER_BYTES);
  return frame;
};

it('a carrier sends an abandoned upload unchanged, whatever the visitor sends afterwards', async () => {
  const [accepted, client] = await socketPair('plain');
  const handlers = { onCarrierLost: () => {}, report: rethrow };
  const mux = new MuxSession({ role: 'edge', budget: new MemoryBudget(1 << 30), clock: systemClock, handlers });
  mux.addCarrier(createCarrier(accepted));
  const { port, ingress, stop } = await startIngress(newHttpTunnel(mux), { clock: new FakeClock() });
  const visitor = net.connect(port, '127.0.0.1');
  cleanups.push(
    () => client.destroy(),
    () => mux.close({ code: 'cancelled', text: 'test is over' }),
    () => stop(),
    () => visitor.destroy(),
  );
  const received: Buffer[] = [];
  const types: number[] = [];
  const parser = new FrameParser({
    onData: (_streamId, bytes, start, end) => received.push(Buffer.from(bytes.subarray(start, end))),
    onDatagram: () => {},
    onFrame: (type, streamId) => {
      types.push(type);
      if (type !== FRAME.OPEN) return;
      client.write(encodeCredit(FRAME.OPENED, streamId, WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES));
      client.pause();
    },
  });
  client.on('data', (chunk: Buffer) => void parser.push(chunk, 0, chunk.length));
  client.resume();
  visitor.write(HEAD);
  visitor.write(BODY);
  // The client does not read, so that at last no byte moves and a part of a write waits for the kernel.
  let before = 0;
  await eventually(
    () => {
      const sent = ingress.totals.bytesToClient;
      const stands = sent > 1 << 20 && sent === before;
      before = sent;
      expect(stands).toBe(true);
    },
    { intervalMs: 300 },
  );
  client.write(dataFrame(2, ANSWER));
  let answer = '';
  visitor.on('data', (chunk: Buffer) => (answer += String(chunk)));
  await eventually(() => expect(answer).toMatch(/ok$/));
  // The edge reads and drops the rest of the upload.
  await eventually(() => expect(visitor.writableLength).toBe(0));
  client.resume();
  await eventually(() => expect(types).toContain(FRAME.RESET));
  const all = Buffer.concat(received);
  const sent = all.subarray(all.indexOf('\r\n\r\n') + 4);
  expect([parser.failure, hashOf(sent)]).toEqual([null, hashOf(BODY.subarray(0, sent.length))]);
  expect(sent.length).toBeGreaterThan(1 << 20);
});
