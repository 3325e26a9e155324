// 20 visitors that ask and never read, of each kind: the server's memory hardly grows, and the metric of what waits for them stays small.
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { askHttp, openHttp, type PublicEndpoint, residentMb, startWeb } from '../http-tunnels.fixture.ts';
import { askHttp2, askSecurely, dialHttp2, nameOf, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import { type GarbageCollector, garbageCollectorOf, INSPECTABLE } from '../inspector.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { type Harness, it } from '../system-test.fixture.ts';
import { visit } from '../visitor.fixture.ts';

const VISITORS = 20;
const TIMEOUT_MS = 120_000;
/** Requests at once: both they and their answers are more than the server may keep. */
const PIPELINED = 40_000;
/** Of our own for each, and as much again of a service's data: the credit of its stream. */
const QUEUE_MAX_BYTES = 256 * 1024;
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

/** The server's memory without its garbage, of which a newer Node.js lets more lie for longer: what stays is held. */
class HeldMemory {
  readonly #stack: Stack;
  readonly #collector: GarbageCollector;
  #beforeMb = 0;

  private constructor(stack: Stack, collector: GarbageCollector) {
    this.#stack = stack;
    this.#collector = collector;
  }

  static async of(harness: Harness, stack: Stack): Promise<HeldMemory> {
    const memory = new HeldMemory(stack, harness.use(await garbageCollectorOf(stack.program)));
    memory.#beforeMb = await memory.#settledMb(false);
    return memory;
  }

  /** Since it was made. All visitors are there, and bytes wait for them where `isStalled` says so. */
  async grownMb(isStalled: boolean): Promise<number> {
    await eventually(async () =>
      expect(await figure(this.#stack, 'tunnel_active_connections')).toBeGreaterThanOrEqual(VISITORS),
    );
    return (await this.#settledMb(isStalled)) - this.#beforeMb;
  }

  /** Once nothing moves any more. */
  async #settledMb(isStalled: boolean): Promise<number> {
    let last = { residentMb: 0, queuedBytes: -1 };
    await eventually(
      async () => {
        const before = last;
        await this.#collector.collect();
        last = { residentMb: residentMb(this.#stack.program.pid), queuedBytes: await queuedBytes(this.#stack) };
        if (isStalled) expect(last.queuedBytes).toBeGreaterThan(0);
        expect(last.queuedBytes).toBe(before.queuedBytes);
        expect(Math.abs(last.residentMb - before.residentMb)).toBeLessThan(0.5);
      },
      { timeoutMs: 20_000, intervalMs: 500 },
    );
    return last.residentMb;
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

describe('visitors that never read', () => {
  it.for([
    ['404 pages', 'nobody.localhost', '/', PIPELINED, true],
    ['pages of a service', '{host}', '/', PIPELINED, false],
    ['interim heads', '{host}', '/hints', 1, false],
    ['a body', '{host}', '/endless', 1, true],
  ] as const)(
    'over HTTP/1.1 in clear: %s',
    { timeout: TIMEOUT_MS },
    async ([, host, path, times, isStalled], { harness }) => {
      const stack = await harness.stack({ env: INSPECTABLE });
      const { endpoint } = await openHttp(harness, stack, harness.use(await startService()).port);
      const request = get(host.replace('{host}', endpoint.host), path);
      await warmUp(() => askHttp(endpoint, { path: '/large' }));
      const memory = await HeldMemory.of(harness, stack);
      await stall(
        harness,
        Array.from({ length: VISITORS }, () => visit(endpoint.port)),
        request,
        times,
      );
      const grown = await memory.grownMb(isStalled);
      expect(await queuedBytes(stack)).toBeLessThan(VISITORS * 2 * QUEUE_MAX_BYTES);
      expect(grown).toBeLessThan(20);
    },
  );

  it.for([
    ['404 pages', 'nobody.localhost', '/', PIPELINED, false],
    ['interim heads', '{host}', '/hints', 1, false],
    ['a body', '{host}', '/endless', 1, true],
  ] as const)('over TLS: %s', { timeout: TIMEOUT_MS }, async ([, host, path, times, isStalled], { harness }) => {
    const stack = await harness.stack({ tls: true, env: INSPECTABLE });
    const { endpoint } = await openHttp(harness, stack, harness.use(await startService()).port, TLS_FLAGS);
    const request = get(host.replace('{host}', endpoint.host), path);
    await warmUp(() => askSecurely(endpoint, '/large'));
    const memory = await HeldMemory.of(harness, stack);
    await stall(
      harness,
      Array.from({ length: VISITORS }, () => secure(endpoint)),
      request,
      times,
    );
    const grown = await memory.grownMb(isStalled);
    expect(await queuedBytes(stack)).toBeLessThan(VISITORS * 2 * QUEUE_MAX_BYTES);
    expect(grown).toBeLessThan(20);
  });

  it.for(['/endless', '/hints'])('over HTTP/2: %s', { timeout: TIMEOUT_MS }, async (path, { harness }) => {
    const stack = await harness.stack({ tls: true, env: INSPECTABLE });
    const { endpoint } = await openHttp(harness, stack, harness.use(await startService()).port, TLS_FLAGS);
    const warm = dialHttp2(harness, endpoint);
    await warmUp(() => askHttp2(warm, '/large'));
    const memory = await HeldMemory.of(harness, stack);
    for (let at = 0; at < VISITORS; at += 1) {
      const stream = dialHttp2(harness, endpoint).request({ ':path': path });
      stream.on('error', () => {}).pause();
    }
    const grown = await memory.grownMb(path === '/endless');
    expect(await queuedBytes(stack)).toBeLessThan(VISITORS * 4 * QUEUE_MAX_BYTES);
    expect(grown).toBeLessThan(40);
  });
});
