// 20 visitors who ask and never read, of each kind, and what a server keeps for them.
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from '../harness.fixture.ts';
import { askHttp, openHttp, type PublicEndpoint, startWeb } from '../http-tunnels.fixture.ts';
import { askHttp2, askSecurely, dialHttp2, nameOf, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import { type HeldMemory, INSPECTABLE, type MemoryProbe, memoryProbeOf } from '../inspector.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { visit } from '../visitor.fixture.ts';

const VISITORS = 20;
export const STALLED_TIMEOUT_MS = 240_000;
const SETTLES = { timeoutMs: 60_000, intervalMs: 500 };
/** Requests at once: both they and their answers are more than the server may keep. */
const PIPELINED = 40_000;
/** Of our own for each, and as much again of a service's data: the credit of its stream. */
const QUEUE_MAX_BYTES = 256 * 1024;
/** Pages of a burst that is over: nobody can order when they are given back. */
const ALLOCATOR_KEEPS_MB = 50;
const LARGE = Buffer.alloc(4 * 1024 * 1024, 'y');
const PIECE = Buffer.alloc(64 * 1024, 'x');

/** `/endless`: as much as is taken. `/hints`: interim heads without end. */
const startService = () =>
  startWeb((request, response) => {
    if (request.url === '/hints') {
      const socket = request.socket;
      const more = (): void => {
        while (!socket.destroyed && socket.write('HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n'));
      };
      socket.on('error', () => {}).on('drain', more);
      more();
    } else if (request.url === '/endless') {
      const more = (): void => {
        while (!response.destroyed && response.write(PIECE));
      };
      response.on('drain', more);
      more();
    } else response.end(request.url === '/large' ? LARGE : 'served');
  });

const secure = (endpoint: PublicEndpoint): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const options = { ...TRUST, host: '127.0.0.1', port: endpoint.port, servername: nameOf(endpoint) };
    const socket = connectTls(options, () => resolve(socket));
    socket.once('error', reject);
  });

const figure = async (stack: Stack, name: string): Promise<number> => {
  const text = await (await fetch(stack.run.metrics_url)).text();
  return Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1]);
};

const queuedBytes = (stack: Stack): Promise<number> => figure(stack, 'tunnel_queued_bytes');

/** What the server holds beyond what it held at first, garbage aside: of that a newer Node.js lets more lie, and for longer. */
class MemoryGrowth {
  readonly #stack: Stack;
  readonly #probe: MemoryProbe;
  #before: HeldMemory = { residentMb: 0, referredMb: 0 };

  private constructor(stack: Stack, probe: MemoryProbe) {
    this.#stack = stack;
    this.#probe = probe;
  }

  static async from(harness: Harness, stack: Stack): Promise<MemoryGrowth> {
    const growth = new MemoryGrowth(stack, harness.use(await memoryProbeOf(stack.program)));
    growth.#before = await growth.#settled(false);
    return growth;
  }

  /** All visitors are there, and bytes wait for them where `isStalled` says so. */
  async expectBelow(mb: number, isStalled: boolean): Promise<void> {
    await eventually(
      async () => expect(await figure(this.#stack, 'tunnel_active_connections')).toBeGreaterThanOrEqual(VISITORS),
      SETTLES,
    );
    // Again: on a busy machine a server that gets no time looks like one in which nothing moves.
    await eventually(async () => {
      const { residentMb, referredMb } = await this.#settled(isStalled);
      expect(referredMb - this.#before.referredMb).toBeLessThan(mb);
      // What is outside of the heap and not counted as its own, as a socket's writes that wait.
      expect(residentMb - this.#before.residentMb).toBeLessThan(mb + ALLOCATOR_KEEPS_MB);
    }, SETTLES);
  }

  /** Once nothing moves any more. */
  async #settled(isStalled: boolean): Promise<HeldMemory> {
    let last = { residentMb: 0, referredMb: 0, queuedBytes: -1 };
    await eventually(async () => {
      const before = last;
      last = { ...(await this.#probe.held()), queuedBytes: await queuedBytes(this.#stack) };
      if (isStalled) expect(last.queuedBytes).toBeGreaterThan(0);
      expect(last.queuedBytes).toBe(before.queuedBytes);
      expect(Math.abs(last.residentMb - before.residentMb)).toBeLessThan(0.5);
      expect(Math.abs(last.referredMb - before.referredMb)).toBeLessThan(0.5);
    }, SETTLES);
    return last;
  }
}

/** As many that read: what the server takes for these is not what it takes for those that do not. */
const warmUp = async (ask: () => Promise<unknown>): Promise<void> => {
  for (let at = 0; at < 3; at += 1) await Promise.all(Array.from({ length: VISITORS }, ask));
};

const get = (host: string, path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

const stall = async (harness: Harness, sockets: Promise<Socket>[], request: string, times: number): Promise<void> => {
  for (const socket of await Promise.all(sockets)) {
    socket.pause().on('error', () => {});
    harness.use({ close: async () => void socket.destroy() });
    for (let at = 0; at < times; at += 100) socket.write(request.repeat(Math.min(times, 100)));
  }
};

export interface StalledKind {
  readonly over: 'plain HTTP/1.1' | 'TLS' | 'HTTP/2';
  readonly what: string;
  /** `{host}`: the tunnel's. */
  readonly host?: string;
  readonly path: string;
  /** How many requests each visitor sends at once. */
  readonly times?: number;
  /** Bytes of the server itself wait for these visitors; else the service or the kernel keeps them. */
  readonly isStalled: boolean;
}

export const NOBODY = { what: '404 pages', host: 'nobody.localhost', path: '/', times: PIPELINED } as const;
export const PAGES = { what: 'pages of a service', path: '/', times: PIPELINED } as const;
export const HINTS = { what: 'interim heads', path: '/hints', isStalled: false } as const;
export const BODY = { what: 'a body', path: '/endless', isStalled: true } as const;

/** The server's memory hardly grows, and the metric of the bytes that wait for visitors stays small. */
export const expectLittleKept = async (harness: Harness, kind: StalledKind): Promise<void> => {
  const { over, host = '{host}', path, times = 1, isStalled } = kind;
  const isClear = over === 'plain HTTP/1.1';
  const stack = await harness.stack({ tls: !isClear, env: INSPECTABLE });
  const { port } = harness.use(await startService());
  const { endpoint } = await openHttp(harness, stack, port, isClear ? [] : TLS_FLAGS);
  if (over === 'HTTP/2') {
    await expectLittleKeptOverHttp2(harness, stack, endpoint, kind);
    return;
  }
  await warmUp(() => (isClear ? askHttp(endpoint, { path: '/large' }) : askSecurely(endpoint, '/large')));
  const growth = await MemoryGrowth.from(harness, stack);
  const visitors = Array.from({ length: VISITORS }, () => (isClear ? visit(endpoint.port) : secure(endpoint)));
  await stall(harness, visitors, get(host.replace('{host}', endpoint.host), path), times);
  await growth.expectBelow(20, isStalled);
  expect(await queuedBytes(stack)).toBeLessThan(VISITORS * 2 * QUEUE_MAX_BYTES);
};

const expectLittleKeptOverHttp2 = async (
  harness: Harness,
  stack: Stack,
  endpoint: PublicEndpoint,
  { path, isStalled }: StalledKind,
): Promise<void> => {
  const warm = dialHttp2(harness, endpoint);
  await warmUp(() => askHttp2(warm, '/large'));
  const growth = await MemoryGrowth.from(harness, stack);
  for (let at = 0; at < VISITORS; at += 1) {
    const stream = dialHttp2(harness, endpoint).request({ ':path': path });
    stream.on('error', () => {}).pause();
  }
  await growth.expectBelow(40, isStalled);
  expect(await queuedBytes(stack)).toBeLessThan(VISITORS * 4 * QUEUE_MAX_BYTES);
};
