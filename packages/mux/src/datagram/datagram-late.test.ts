// Datagrams are dropped rather than delivered late, even with the buffers of a real kernel in between: on a stalled link, and on a link
// with a fifth of the required capacity. The test controls time: every 5 ms step waits until all bytes passed by the link have been read,
// however slow the machine is.

import * as net from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CAPABILITIES } from '@tunnel/protocol';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createCarrier } from '../carrier/carrier.ts';
import { MuxSession } from '../session/mux-session.ts';
import { MemoryBudget } from '../stream/flow-control.ts';
import type { DatagramStream } from './datagram-stream.ts';

const HEAD = { tunnelId: 'tun_1', visitor: '203.0.113.7:4711' };
const TICK_MS = 5;
const BYE = { code: 'cancelled', text: 'over' } as const;

let clock: FakeClock;
const cleanups: (() => unknown)[] = [];
beforeEach(() => {
  clock = new FakeClock();
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Returns the two ends of a new loopback connection: [dialed, accepted]. */
const sockets = async (): Promise<[net.Socket, net.Socket]> => {
  const server = net.createServer({ noDelay: true, pauseOnConnect: true });
  const accepted = new Promise<net.Socket>((resolve) => server.once('connection', resolve));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const dialled = net.connect({ port: (server.address() as net.AddressInfo).port, host: '127.0.0.1', noDelay: true });
  await new Promise((resolve) => dialled.once('connect', resolve));
  dialled.pause();
  const pair: [net.Socket, net.Socket] = [dialled, await accepted];
  server.close();
  for (const socket of pair) socket.on('error', () => {});
  cleanups.push(() => pair.forEach((socket) => socket.destroy()));
  return pair;
};

interface LinkRules {
  /** Capacity from the edge to the client in bytes per 5 ms. Unused capacity is not saved up. */
  readonly bytesPerTick: number;
  readonly delayMs: number;
}

/** A simulated link between the sockets of an edge and a client. Bytes move only when the test calls pass(). */
class Link {
  isStalled = false;
  readonly edge: net.Socket;
  readonly client: net.Socket;
  readonly #rules: LinkRules;
  readonly #ends: readonly [net.Socket, net.Socket];
  readonly #onTheWay: { readonly dueMs: number; readonly to: net.Socket; readonly bytes: Buffer }[] = [];
  readonly #passed = new Map<net.Socket, number>();

  constructor(rules: LinkRules, atEdge: [net.Socket, net.Socket], atClient: [net.Socket, net.Socket]) {
    this.#rules = rules;
    this.edge = atEdge[0];
    this.client = atClient[0];
    this.#ends = [atEdge[1], atClient[1]];
  }

  static async open(rules: LinkRules): Promise<Link> {
    return new Link(rules, await sockets(), await sockets());
  }

  async pass(): Promise<void> {
    if (this.isStalled) return;
    const [near, far] = this.#ends;
    this.#take(near, far, this.#rules.bytesPerTick);
    this.#take(far, near, Number.POSITIVE_INFINITY);
    const now = clock.monotonic();
    for (let next = this.#onTheWay[0]; next !== undefined && next.dueMs <= now; next = this.#onTheWay[0]) {
      this.#onTheWay.shift();
      next.to.write(next.bytes);
      const reader = next.to === far ? this.client : this.edge;
      this.#passed.set(reader, (this.#passed.get(reader) ?? 0) + next.bytes.length);
    }
    for (const [reader, bytes] of this.#passed) while (reader.bytesRead < bytes) await nextTurn();
  }

  #take(from: net.Socket, to: net.Socket, most: number): void {
    let left = most;
    while (left > 0) {
      const bytes = from.read(Math.min(from.readableLength, left)) as Buffer | null;
      if (bytes === null) return;
      left -= bytes.length;
      this.#onTheWay.push({ dueMs: clock.monotonic() + this.#rules.delayMs, to, bytes });
    }
  }
}

interface Arrival {
  readonly sentMs: number;
  readonly arrivedMs: number;
}

/** A datagram flow from an edge to a client: the edge sends, and the arrivals at the client are recorded. */
class Flow {
  readonly arrivals: Arrival[] = [];
  behind = 0;
  readonly #link: Link;
  readonly #bytesPerTick: number;
  readonly #stream: DatagramStream;

  constructor(link: Link, bytesPerTick: number) {
    this.#link = link;
    this.#bytesPerTick = bytesPerTick;
    const client = this.#session('client', (stream) => {
      stream.accept();
      stream.read({
        onDatagram: (bytes, start) =>
          this.arrivals.push({ sentMs: bytes.readDoubleBE(start), arrivedMs: clock.monotonic() }),
        onReset: () => {},
        abandon: rethrow,
      });
    });
    const edge = this.#session('edge', () => {});
    edge.addCarrier(createCarrier(link.edge));
    client.addCarrier(createCarrier(link.client));
    const answer = { onOpened: () => {}, onRefused: () => {}, abandon: rethrow };
    this.#stream = edge.openDatagrams(HEAD, answer) as DatagramStream;
  }

  #session(role: 'edge' | 'client', onDatagramStream: (stream: DatagramStream) => void): MuxSession {
    const handlers = { onCarrierLost: () => {}, report: rethrow, onDatagramStream };
    const budget = new MemoryBudget(2 ** 30);
    const session = new MuxSession({ role, budget, clock, capabilities: CAPABILITIES, handlers });
    cleanups.push(() => session.close(BYE));
    return session;
  }

  open(): Promise<void> {
    return eventually(
      async () => {
        await this.#tick();
        expect(this.#stream.state).toBe('open');
      },
      { intervalMs: 0 },
    );
  }

  /** Sends datagrams of 1,200 bytes for `ms` milliseconds. A datagram starts with its time of sending. */
  async send(ms: number): Promise<void> {
    const bytes = Buffer.alloc(1200);
    let sentBytes = 0;
    for (let tick = 1; tick <= ms / TICK_MS; tick += 1) {
      for (; sentBytes < tick * this.#bytesPerTick; sentBytes += bytes.length) {
        bytes.writeDoubleBE(clock.monotonic());
        if (this.#stream.send(bytes, 0, bytes.length) === 'behind') this.behind += 1;
      }
      await this.#tick();
    }
  }

  async #tick(): Promise<void> {
    await this.#link.pass();
    await clock.advance(TICK_MS);
  }
}

it('datagrams sent after the first 200 ms of a 2 s stall are dropped, and later ones arrive again', async () => {
  const link = await Link.open({ bytesPerTick: Number.POSITIVE_INFINITY, delayMs: 10 });
  const flow = new Flow(link, 12_000);
  await flow.open();
  await flow.send(500);
  expect([flow.arrivals.length > 900, flow.behind]).toEqual([true, 0]);
  link.isStalled = true;
  const stalledMs = clock.monotonic();
  await flow.send(2000);
  const restoredMs = clock.monotonic();
  link.isStalled = false;
  await flow.send(500);
  const during = flow.arrivals.filter(({ sentMs }) => sentMs > stalledMs + 200 && sentMs < restoredMs);
  expect(during).toEqual([]);
  expect(flow.behind).toBeGreaterThan(1000);
  const after = flow.arrivals.filter(({ sentMs }) => sentMs > restoredMs + 100);
  expect(after.length).toBeGreaterThan(100);
});

it('at five times the capacity of a link, datagrams arrive little more than 100 ms late', async () => {
  const bearsPerTick = 12_500;
  const flow = new Flow(await Link.open({ bytesPerTick: bearsPerTick, delayMs: 0 }), 5 * bearsPerTick);
  await flow.open();
  await flow.send(4000);
  const late = flow.arrivals
    .slice(Math.floor(flow.arrivals.length / 8))
    .map(({ sentMs, arrivedMs }) => arrivedMs - sentMs)
    .sort((a, b) => a - b);
  const at = (share: number): number => late[Math.floor(late.length * share)] ?? Number.NaN;
  expect(late.length).toBeGreaterThan(2000);
  expect(flow.behind).toBeGreaterThan(late.length);
  // Without the rule, the kernel's buffers would delay datagrams by seconds.
  expect(at(0.5)).toBeLessThan(150);
  expect(at(0.95)).toBeLessThan(200);
});
