// 20 visitors of a kind, which send requests and never read, and the memory that a server uses for the visitors.
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
/** Number of requests sent at once. Requests and responses exceed the amount of data that the server may keep. */
const PIPELINED = 40_000;
/**
 * Maximum bytes of the server's own data queued per visitor. The data of a service, limited by the credit of its stream, may take as much
 * again.
 */
const QUEUE_MAX_BYTES = 256 * 1024;
/** Tolerance for memory pages of an earlier burst, which the allocator returns at an unpredictable time. */
const ALLOCATOR_KEEPS_MB = 50;
const LARGE = Buffer.alloc(4 * 1024 * 1024, 'y');
const PIECE = Buffer.alloc(64 * 1024, 'x');

/** Starts the local service. `/endless` sends data as long as the visitor reads, and `/hints` sends endless interim responses. */
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

/**
 * Growth of the server's memory since the start of the test. Garbage is excluded, because newer versions of Node.js keep more of it, and
 * for longer.
 */
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

  /**
   * Waits until all visitors are connected, with bytes queued for them if `isStalled` is set, and expects the growth to stay below the
   * bound.
   */
  async expectBelow(mb: number, isStalled: boolean): Promise<void> {
    await eventually(
      async () => expect(await figure(this.#stack, 'tunnel_active_connections')).toBeGreaterThanOrEqual(VISITORS),
      SETTLES,
    );
    // The check is repeated, because a server without CPU time on a busy machine looks like an idle server.
    await eventually(async () => {
      const { residentMb, referredMb } = await this.#settled(isStalled);
      expect(referredMb - this.#before.referredMb).toBeLessThan(mb);
      // The resident memory includes memory outside the heap that V8 does not count, such as queued socket writes.
      expect(residentMb - this.#before.residentMb).toBeLessThan(mb + ALLOCATOR_KEEPS_MB);
    }, SETTLES);
  }

  /** Waits until the memory figures stop changing, and returns the last figures. */
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

/** Makes as many requests with visitors that read, so that the memory for regular requests is not counted as growth. */
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
  /** Host header of the request. `{host}` stands for the host of the tunnel. */
  readonly host?: string;
  readonly path: string;
  /** Number of requests that a visitor sends at once. */
  readonly times?: number;
  /** True if bytes for the visitors are queued in the server. Otherwise the service or the kernel keeps them. */
  readonly isStalled: boolean;
}

export const NOBODY = { what: '404 pages', host: 'nobody.localhost', path: '/', times: PIPELINED } as const;
export const PAGES = { what: 'pages of a service', path: '/', times: PIPELINED } as const;
export const HINTS = { what: 'interim heads', path: '/hints', isStalled: false } as const;
export const BODY = { what: 'a body', path: '/endless', isStalled: true } as const;

/** Expects that the memory of the server hardly grows, and that the metric of queued bytes stays small. */
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
