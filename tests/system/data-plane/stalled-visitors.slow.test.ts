// 20 visitors that ask and never read, of each kind: the server's memory hardly grows, and the metric of what waits for them stays small.
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { askHttp, openHttp, type PublicEndpoint, residentMb, startWeb } from '../http-tunnels.fixture.ts';
import { askHttp2, askSecurely, dialHttp2, nameOf, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { type Harness, it } from '../system-test.fixture.ts';
import { visit } from '../visitor.fixture.ts';

const VISITORS = 20;
const TIMEOUT_MS = 60_000;
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

/** Grown since `beforeMb`, once it stands still. */
const grownMb = async (stack: Stack, beforeMb: number): Promise<number> => {
  await eventually(async () =>
    expect(await figure(stack, 'tunnel_active_connections')).toBeGreaterThanOrEqual(VISITORS),
  );
  let last = 0;
  await eventually(
    () => {
      const before = last;
      last = residentMb(stack.program.pid);
      expect(Math.abs(last - before)).toBeLessThan(0.5);
    },
    { timeoutMs: 20_000, intervalMs: 500 },
  );
  return last - beforeMb;
};

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
    ['404 pages', 'nobody.localhost', '/', 5000],
    ['pages of a service', '{host}', '/', 5000],
    ['interim heads', '{host}', '/hints', 1],
    ['a body', '{host}', '/endless', 1],
  ] as const)('over HTTP/1.1 in clear: %s', { timeout: TIMEOUT_MS }, async ([, host, path, times], { harness }) => {
    const stack = await harness.stack();
    const { endpoint } = await openHttp(harness, stack, harness.use(await startService()).port);
    const request = get(host.replace('{host}', endpoint.host), path);
    await warmUp(() => askHttp(endpoint, { path: '/large' }));
    const before = residentMb(stack.program.pid);
    await stall(
      harness,
      Array.from({ length: VISITORS }, () => visit(endpoint.port)),
      request,
      times,
    );
    const grown = await grownMb(stack, before);
    expect(await queuedBytes(stack)).toBeLessThan(VISITORS * 2 * QUEUE_MAX_BYTES);
    expect(grown).toBeLessThan(20);
  });

  it.for([
    ['404 pages', 'nobody.localhost', '/', 5000],
    ['interim heads', '{host}', '/hints', 1],
    ['a body', '{host}', '/endless', 1],
  ] as const)('over TLS: %s', { timeout: TIMEOUT_MS }, async ([, host, path, times], { harness }) => {
    const stack = await harness.stack({ tls: true });
    const { endpoint } = await openHttp(harness, stack, harness.use(await startService()).port, TLS_FLAGS);
    const request = get(host.replace('{host}', endpoint.host), path);
    await warmUp(() => askSecurely(endpoint, '/large'));
    const before = residentMb(stack.program.pid);
    await stall(
      harness,
      Array.from({ length: VISITORS }, () => secure(endpoint)),
      request,
      times,
    );
    const grown = await grownMb(stack, before);
    expect(await queuedBytes(stack)).toBeLessThan(VISITORS * 2 * QUEUE_MAX_BYTES);
    expect(grown).toBeLessThan(20);
  });

  it.for(['/endless', '/hints'])('over HTTP/2: %s', { timeout: TIMEOUT_MS }, async (path, { harness }) => {
    const stack = await harness.stack({ tls: true });
    const { endpoint } = await openHttp(harness, stack, harness.use(await startService()).port, TLS_FLAGS);
    const warm = dialHttp2(harness, endpoint);
    await warmUp(() => askHttp2(warm, '/large'));
    const before = residentMb(stack.program.pid);
    for (let at = 0; at < VISITORS; at += 1) {
      const stream = dialHttp2(harness, endpoint).request({ ':path': path });
      stream.on('error', () => {}).pause();
    }
    const grown = await grownMb(stack, before);
    expect(await queuedBytes(stack)).toBeLessThan(VISITORS * 4 * QUEUE_MAX_BYTES);
    expect(grown).toBeLessThan(40);
  });
});
