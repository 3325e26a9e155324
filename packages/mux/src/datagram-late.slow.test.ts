// Late is worse than lost, with the buffers of a real kernel in between: a link that stands still, and one that bears a fifth of what is sent.

import * as net from 'node:net';
import { CAPABILITIES } from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { eventually, rethrow, startRelay } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { createCarrier } from './carrier.ts';
import type { DatagramStream } from './datagram-stream.ts';
import { MemoryBudget } from './flow-control.ts';
import { MuxSession } from './mux-session.ts';

const HEAD = { tunnelId: 'tun_1', visitor: '203.0.113.7:4711' };
const TICK_MS = 5;
const BYE = { code: 'cancelled', text: 'over' } as const;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const listen = async (onSocket: (socket: net.Socket) => void): Promise<number> => {
  const server = net.createServer({ noDelay: true, pauseOnConnect: true }, onSocket);
  cleanups.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as net.AddressInfo).port;
};

interface Arrival {
  readonly sentMs: number;
  readonly arrivedMs: number;
}

/** An edge that dials a client through `port`: the edge's end of one flow, and what arrives at the client of it. */
const flowThrough = async (port: number, accepted: Promise<net.Socket>): Promise<[DatagramStream, Arrival[]]> => {
  const arrivals: Arrival[] = [];
  const session = (role: 'edge' | 'client', onDatagramStream: (stream: DatagramStream) => void): MuxSession => {
    const handlers = { onCarrierLost: () => {}, report: rethrow, onDatagramStream };
    const budget = new MemoryBudget(2 ** 30);
    const made = new MuxSession({ role, budget, clock: systemClock, capabilities: CAPABILITIES, handlers });
    cleanups.push(() => made.close(BYE));
    return made;
  };
  const client = session('client', (stream) => {
    stream.accept();
    stream.read({
      onDatagram: (bytes, start) => arrivals.push({ sentMs: bytes.readDoubleBE(start), arrivedMs: performance.now() }),
      onReset: () => {},
      abandon: rethrow,
    });
  });
  const edge = session('edge', () => {});
  const dialled = net.connect({ port, host: '127.0.0.1', noDelay: true });
  await new Promise((resolve) => dialled.once('connect', resolve));
  dialled.pause();
  edge.addCarrier(createCarrier(dialled));
  client.addCarrier(createCarrier(await accepted));
  const answer = { onOpened: () => {}, onRefused: () => {}, abandon: rethrow };
  const stream = edge.openDatagrams(HEAD, answer) as DatagramStream;
  await eventually(() => expect(stream.state).toBe('open'));
  return [stream, arrivals];
};

/** Sends `bytesPerTick` in datagrams of 1,200 that carry their time, every 5 ms until it is called off; by the clock, as the link passes them. */
const sendSteadily = (stream: DatagramStream, bytesPerTick: number): { behind: number; stop(): void } => {
  const bytes = Buffer.alloc(1200);
  const counts = { behind: 0, stop: () => clearInterval(timer) };
  const startedMs = performance.now();
  let sentBytes = 0;
  const timer = setInterval(() => {
    const due = ((performance.now() - startedMs) / TICK_MS) * bytesPerTick;
    for (; sentBytes < due; sentBytes += bytes.length) {
      bytes.writeDoubleBE(performance.now());
      if (stream.send(bytes, 0, bytes.length) === 'behind') counts.behind += 1;
    }
  }, TICK_MS);
  cleanups.push(counts.stop);
  return counts;
};

/** The load goes on for so long. */
const passes = (ms: number): Promise<void> => {
  const untilMs = performance.now() + ms;
  return eventually(() => expect(performance.now()).toBeGreaterThan(untilMs));
};

it('nothing that is sent after the first 200 ms of a stall of 2 s arrives, and all goes well at once when it ends', async () => {
  let take: (socket: net.Socket) => void = () => {};
  const accepted = new Promise<net.Socket>((resolve) => {
    take = resolve;
  });
  const relay = await startRelay({ target: { port: await listen((socket) => take(socket)) }, delayMs: 10 });
  cleanups.push(() => relay.close());
  const [stream, arrivals] = await flowThrough(relay.port, accepted);
  const sending = sendSteadily(stream, 12_000);
  await passes(500);
  relay.blackhole();
  const stalledMs = performance.now();
  await passes(2000);
  const restoredMs = performance.now();
  relay.restore();
  await passes(500);
  sending.stop();
  const during = arrivals.filter(({ sentMs }) => sentMs > stalledMs + 200 && sentMs < restoredMs);
  expect(during).toEqual([]);
  expect(sending.behind).toBeGreaterThan(1000);
  const after = arrivals.filter(({ sentMs }) => sentMs > restoredMs + 100);
  expect(after.length).toBeGreaterThan(100);
});

it('at five times of what a link bears, what arrives is little more than 100 ms late', async () => {
  const bearsPerTick = 12_500;
  let take: (socket: net.Socket) => void = () => {};
  const accepted = new Promise<net.Socket>((resolve) => {
    take = resolve;
  });
  const behindIt = await listen((socket) => take(socket));
  const narrow = await listen((near) => {
    const far = net.connect({ port: behindIt, host: '127.0.0.1', noDelay: true });
    far.pipe(near);
    for (const socket of [near, far]) socket.on('error', () => {});
    // A busy machine makes it no slower.
    let passedBytes = 0;
    const startedMs = performance.now();
    const timer = setInterval(() => {
      const due = ((performance.now() - startedMs) / TICK_MS) * bearsPerTick;
      while (passedBytes < due) {
        const chunk = near.read(Math.min(near.readableLength, Math.ceil(due - passedBytes))) as Buffer | null;
        if (chunk === null) {
          // An idle link saves nothing up.
          passedBytes = due;
          break;
        }
        passedBytes += chunk.length;
        far.write(chunk);
      }
    }, TICK_MS);
    cleanups.push(() => {
      clearInterval(timer);
      near.destroy();
      far.destroy();
    });
  });
  const [stream, arrivals] = await flowThrough(narrow, accepted);
  const sending = sendSteadily(stream, 5 * bearsPerTick);
  await passes(4000);
  sending.stop();
  const late = arrivals
    .slice(Math.floor(arrivals.length / 8))
    .map(({ sentMs, arrivedMs }) => arrivedMs - sentMs)
    .sort((a, b) => a - b);
  const at = (share: number): number => late[Math.floor(late.length * share)] ?? Number.NaN;
  expect(late.length).toBeGreaterThan(2000);
  expect(sending.behind).toBeGreaterThan(late.length);
  // Without the rule the kernel's buffers alone would make it seconds. A busy machine adds its own.
  expect(at(0.5)).toBeLessThan(300);
  expect(at(0.95)).toBeLessThan(600);
});
