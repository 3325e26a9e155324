// Tests of misbehaving visitors and services: every visitor gets a response or a reset, well-behaved visitors are not affected, and
// memory stays flat.
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { deterministicBytes, eventually, freePort, startRelay, startTcpServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  askHttp,
  openHttp,
  type PublicEndpoint,
  problemOf,
  readUntil,
  residentMb,
  sendRaw,
  startWeb,
} from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack, TunnelRow } from '../stack.fixture.ts';
import { endOf } from '../visitor.fixture.ts';

const shared = new Harness();
/** Shared stack for tests that read no counters of the stack. */
let common: Stack;
beforeAll(async () => {
  common = await shared.stack();
});
afterAll(() => shared.close());

const isOf =
  ({ host }: PublicEndpoint) =>
  ({ label }: TunnelRow): boolean =>
    host.startsWith(`${label}.`);

const JSON_PLEASE = { accept: 'application/json' };

describe.concurrent('visitors that stop reading', () => {
  const STALLED = 20;

  it('do not fill the memory of edge or client, and other visitors are still served', async ({ harness }) => {
    const piece = deterministicBytes(64 * 1024, 1);
    const written: { bytes: number }[] = [];
    const web = harness.use(
      await startWeb((request, response) => {
        if (request.url !== '/endless') return void response.end('here');
        const progress = { bytes: 0 };
        written.push(progress);
        const pump = (): void => {
          let goesOn = true;
          while (goesOn && !response.destroyed) {
            goesOn = response.write(piece);
            progress.bytes += piece.length;
          }
        };
        response.on('drain', pump);
        pump();
      }),
    );
    // Edge and client run as executables, so that the memory of the processes can be measured.
    const stack = await harness.stack({ programs: true });
    const { tunnel, endpoint } = await openHttp(harness, stack, web.port, [], { programs: true });
    expect((await askHttp(endpoint)).text).toBe('here');
    const pids = [stack.program.pid, tunnel.pid];
    const before = pids.map((pid) => residentMb(pid));
    const stalled: Socket[] = [];
    for (let nth = 0; nth < STALLED; nth += 1) {
      const socket = await sendRaw(endpoint, 'GET /endless HTTP/1.1\r\nHost: {host}\r\n\r\n');
      socket.pause();
      stalled.push(socket);
    }
    // Waits until the service cannot write any more.
    let last = -1;
    await eventually(
      () => {
        const sum = written.reduce((total, { bytes }) => total + bytes, 0);
        const isStuck = written.length === STALLED && sum === last;
        last = sum;
        expect(isStuck).toBe(true);
      },
      { timeoutMs: 30_000, intervalMs: 500 },
    );
    for (let nth = 0; nth < 20; nth += 1) expect((await askHttp(endpoint)).text).toBe('here');
    pids.forEach((pid, index) => expect(residentMb(pid) - (before[index] ?? 0)).toBeLessThan(150));
    for (const socket of stalled) socket.destroy();
    await eventually(async () => expect(await stack.metric('tunnel_active_connections')).toBe(0));
  });
});

describe.concurrent('a visitor that leaves', () => {
  it.for(['with a FIN', 'with a RST'] as const)(
    '%s before the response: the service sees its connection close',
    async (how, { harness }) => {
      let isAsked = false;
      let isGone = false;
      const web = harness.use(
        await startWeb((request) => {
          isAsked = true;
          request.socket.on('close', () => {
            isGone = true;
          });
        }),
      );
      const { tunnel, endpoint } = await openHttp(harness, common, web.port);
      const socket = await sendRaw(endpoint, 'GET /slow HTTP/1.1\r\nHost: {host}\r\n\r\n');
      await eventually(() => expect(isAsked).toBe(true));
      if (how === 'with a FIN') socket.end();
      else socket.resetAndDestroy();
      await eventually(() => expect(isGone).toBe(true));
      expect(await tunnel.waitFor('request')).toMatchObject({ path: '/slow', status: null, aborted: true });
      socket.destroy();
    },
  );

  it('during an upload or a download: the service sees its connection close', async ({ harness }) => {
    const gone: string[] = [];
    const web = harness.use(
      await startWeb((request, response) => {
        const { url = '' } = request;
        request.socket.on('close', () => gone.push(url));
        request.resume();
        if (url !== '/down') return;
        response.write('x'.repeat(1000));
      }),
    );
    const stack = await harness.stack();
    const { endpoint } = await openHttp(harness, stack, web.port);
    const up = await sendRaw(endpoint, 'PUT /up HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000\r\n\r\nbegun');
    const down = await sendRaw(endpoint, 'GET /down HTTP/1.1\r\nHost: {host}\r\n\r\n');
    await readUntil(down, /x{1000}/);
    await eventually(async () => expect(await stack.metric('tunnel_active_connections')).toBe(2));
    down.destroy();
    await eventually(() => expect(gone).toEqual(['/down']));
    up.destroy();
    await eventually(() => expect(gone).toEqual(['/down', '/up']));
  });
});

describe.concurrent('a local service', () => {
  it('that is down gives a 502 with advice at once, and is reachable again after its start', async ({ harness }) => {
    const port = await freePort();
    const { tunnel, endpoint } = await openHttp(harness, common, port);
    const since = performance.now();
    const problem = problemOf(await askHttp(endpoint, { headers: JSON_PLEASE }));
    expect(performance.now() - since).toBeLessThan(8000);
    expect(problem).toMatchObject({ status: 502, code: 'LOCAL_UNREACHABLE' });
    expect(problem.error).toContain('connection refused');
    expect(problem.next).toContain('start the local service');
    expect(await tunnel.waitFor('error')).toMatchObject({ code: 'CLIENT_LOCAL_DIAL', fatal: false });
    harness.use(await startWeb((_, response) => void response.end('back'), port));
    expect((await askHttp(endpoint)).text).toBe('back');
  });

  it('that sends no first byte in first_byte_timeout_secs gives a 504; the rest of a body can take longer', async ({
    harness,
  }) => {
    const web = harness.use(
      await startWeb((request, response) => {
        if (request.url !== '/drip') return;
        response.write('first ');
        setTimeout(() => response.end('last'), 1500);
      }),
    );
    const stack = await harness.stack({ server: 'first_byte_timeout_secs = 1' });
    const { endpoint } = await openHttp(harness, stack, web.port);
    // On a busy machine even the first byte can miss the timeout. The request is then repeated.
    const dripped = eventually(
      async () => {
        const { status, text } = await askHttp(endpoint, { path: '/drip' });
        expect([status, text]).toEqual([200, 'first last']);
      },
      { timeoutMs: 60_000 },
    );
    const slow = await askHttp(endpoint, { headers: JSON_PLEASE });
    expect(problemOf(slow)).toMatchObject({ status: 504, code: 'LOCAL_TIMEOUT' });
    await dripped;
  });

  it.for([
    ['that does not speak HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n', 'LOCAL_MALFORMED'],
    ['that hangs up without a word', '', 'LOCAL_CLOSED'],
  ] as const)('%s gives a 502, and the next request tries again', async ([, words, code], { harness }) => {
    const local = harness.use(await startTcpServer((socket) => void socket.once('data', () => socket.end(words))));
    const { endpoint } = await openHttp(harness, common, local.port);
    for (let nth = 1; nth <= 2; nth += 1) {
      expect(problemOf(await askHttp(endpoint, { headers: JSON_PLEASE }))).toMatchObject({ status: 502, code });
      expect(local.totalConnections).toBe(nth);
    }
  });

  it('that dies during a body resets the visitor, so that a short body never looks complete', async ({ harness }) => {
    const web = harness.use(
      await startWeb((request, response) => {
        response.write('half');
        setTimeout(() => request.socket.resetAndDestroy(), 50);
      }),
    );
    const { endpoint } = await openHttp(harness, common, web.port);
    await expect(askHttp(endpoint)).rejects.toThrow(/aborted|ECONNRESET|hang up/);
  });

  it('that closes idle connections at any time loses no request', async ({ harness }) => {
    const web = harness.use(await startWeb((_, response) => void response.end('served')));
    // Idle timeout of the service in milliseconds, shorter than any pause between requests of this test.
    web.server.keepAliveTimeout = 1;
    const { endpoint } = await openHttp(harness, common, web.port);
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const statuses = new Set<number>();
    for (let round = 0; round < 50; round += 1) {
      const asked = Array.from({ length: 4 }, () => askHttp(endpoint, { agent }));
      for (const { status } of await Promise.all(asked)) statuses.add(status);
    }
    agent.destroy();
    expect([...statuses]).toEqual([200]);
  });
});

describe.concurrent('a broken link between client and edge', () => {
  it('cuts off responses in progress, gives a 502 to other requests, and is restored', async ({ harness }) => {
    const web = harness.use(
      await startWeb((request, response) => {
        if (request.url === '/begun') response.write('begun');
        else if (request.url !== '/not-begun') response.end('here');
      }),
    );
    const relay = harness.use(await startRelay({ target: { port: common.controlPort } }));
    const { tunnel, endpoint } = await openHttp(harness, common, web.port, [], { server: `127.0.0.1:${relay.port}` });
    const begun = await sendRaw(endpoint, 'GET /begun HTTP/1.1\r\nHost: {host}\r\n\r\n');
    await readUntil(begun, /begun/);
    const end = endOf(begun);
    const notBegun = askHttp(endpoint, { path: '/not-begun', headers: JSON_PLEASE });
    await eventually(async () => expect((await common.tunnels()).find(isOf(endpoint))?.request_count).toBe(2));
    relay.resetAll();
    expect(await end).toBe('ECONNRESET');
    expect((await notBegun).status).toBe(502);
    await tunnel.waitFor('reconnected');
    expect((await askHttp(endpoint)).text).toBe('here');
  });
});
