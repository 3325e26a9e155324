// Limits of the data kept for a visitor, and of its time: bytes behind a request, a missing decision, the queues of all visitors
// together, and a response that is cut off.

import * as net from 'node:net';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import type { RouteDecision } from '../../routing/http-router.ts';
import { type HttpStand, startHttpStand, talk } from './http.fixture.ts';
import { Http1Visitor } from './http1/http1-visitor.ts';
import { StalledVisitor } from './http1/stalled-visitor.fixture.ts';
import { ask, startHttpsPort, visitHttp2 } from './https.fixture.ts';
import { HTTP_ROUTE_TIMEOUT_MS } from './proxied-request.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type StandOptions = Parameters<typeof startHttpStand>[1];

const start = async (
  onData: (socket: net.Socket, text: string) => void,
  options?: StandOptions,
): Promise<HttpStand> => {
  const open = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => onData(socket, chunk.toString('latin1')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stand = await startHttpStand((server.address() as net.AddressInfo).port, options);
  cleanups.push(
    () => open.forEach((socket) => socket.destroy()),
    () => server.close(),
    () => stand.stop(),
  );
  return stand;
};

const connect = (stand: HttpStand): net.Socket => {
  const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
  socket.on('error', () => {});
  cleanups.push(() => socket.destroy());
  return socket;
};

/** Adds a visitor that reads everything. The test sends the visitor's bytes. */
const enter = (stand: HttpStand): StalledVisitor => {
  const visitor = new StalledVisitor(false, Number.POSITIVE_INFINITY);
  new Http1Visitor(visitor, { address: '203.0.113.7', scheme: 'http', isProxy: false }, stand.ingress).start();
  return visitor;
};

const GET = 'GET / HTTP/1.1\r\nHost: web.edge.test\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('bytes after a request', () => {
  it('are answered in order while they are few', async () => {
    const stand = await start((socket) => setTimeout(() => socket.write(OK), 5));
    const answer = await talk(stand.port, GET.repeat(20) + GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(21);
  });

  it('close the connection after the response, with Connection: close, if there are too many', async () => {
    let answer = (): void => {};
    const stand = await start((socket) => {
      answer = () => void socket.write(OK);
    });
    const visitor = enter(stand);
    visitor.send(GET);
    await eventually(() => expect(stand.dials).toBe(1));
    for (let at = 0; at < 50; at += 1) expect(visitor.send(GET.repeat(100))).toBe(true);
    await eventually(() => {
      answer();
      expect(visitor.isEnded).toBe(true);
    });
    expect(visitor.text.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
    expect(visitor.text).toMatch(/connection: close/i);
  });

  it('cause 400 instead of an upgrade if some of them were dropped', async () => {
    let answer = (): void => {};
    const stand = await start((socket) => {
      answer = () =>
        void socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    });
    const visitor = enter(stand);
    visitor.send(GET.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'));
    for (let at = 0; at < 50; at += 1) expect(visitor.send('x'.repeat(10_000))).toBe(true);
    await eventually(() => {
      answer();
      expect(visitor.text).toMatch(/^HTTP\/1\.1 400 /);
    });
    await eventually(() => expect([visitor.isEnded, stand.pair.edge.liveStreams]).toEqual([true, 0]));
  });
});

describe('a routing decision', () => {
  it('that does not come gets 503 in HTTP/1.1 and HTTP/2, and a late decision has no effect', async () => {
    const decide: (() => void)[] = [];
    const stand: HttpStand = await start((socket) => socket.write(OK), {
      router: {
        visitorOf: (address, scheme) => ({ address, scheme, isProxy: false }),
        route: (visitor) =>
          new Promise<RouteDecision>((resolve) => decide.push(() => resolve({ route: stand.tunnel, visitor }))),
      },
    });
    const port = await startHttpsPort(stand.ingress);
    cleanups.push(() => port.stop());
    const session = visitHttp2({ port });
    cleanups.push(() => session.destroy());
    const second = ask(session, { ':path': '/' });
    const first = talk(stand.port, GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    await eventually(() => expect(decide).toHaveLength(2));
    await stand.clock.advance(HTTP_ROUTE_TIMEOUT_MS + 2 * EDGE_LIMITS.SESSION_TICK_MS);
    expect(await first).toMatch(/^HTTP\/1\.1 503 [^]*x-tunnel-error: HTTP_ROUTE_TIMEOUT/);
    expect((await second).status).toBe(503);
    for (const late of decide) late();
    await new Promise((resolve) => setImmediate(resolve));
    expect(stand.dials).toBe(0);
  });
});

describe('a response that is cut off', () => {
  it.each([
    ['HTTP/1.0', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n', '3\r\nabc\r\nzz\r\n'],
    ['HTTP/1.1', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n', '3\r\nabc\r\nzz\r\n'],
  ])('is always a reset for a visitor of %s', async (version, begin, rest) => {
    let cutOff = (): void => {};
    const stand = await start((socket) => {
      socket.write(begin);
      cutOff = () => void socket.write(rest);
    });
    for (let at = 0; at < 30; at += 1) {
      const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
      let text = '';
      socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
      const end = new Promise<string>((resolve) => {
        socket.on('end', () => resolve('end'));
        socket.on('error', () => resolve('reset'));
      });
      socket.write(`GET / ${version}\r\nHost: web.edge.test\r\n\r\n`);
      // Without this wait, no byte might be out, and the visitor would get a complete 502 response.
      await eventually(() => expect(text).toContain('ok'));
      cutOff();
      // The visitor must first read all bytes, because libuv reports a reset right behind bytes as an end.
      if (version === 'HTTP/1.0') await eventually(() => expect(text).toContain('abc'));
      await eventually(async () => {
        await stand.clock.advance(EDGE_LIMITS.SESSION_TICK_MS);
        expect(stand.ingress.connections).toBe(0);
      });
      expect(await end).toBe('reset');
      socket.destroy();
    }
  });
});

describe('the queues of all visitors together', () => {
  it('stay within their budget: the visitor with the largest queue is closed, the others continue', async () => {
    const piece = Buffer.alloc(64 * 1024, 'x');
    const stand = await start(
      (socket, text) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n');
        if (!text.includes('/endless')) return;
        const more = (): void => {
          while (!socket.destroyed && socket.write(piece));
        };
        socket.on('drain', more);
        more();
      },
      { queuesMaxBytes: 1000 },
    );
    const stalled = connect(stand);
    stalled.pause();
    const patient = connect(stand);
    patient.write(GET);
    stalled.write(GET.replace('/ ', '/endless '));
    await eventually(() => expect(stand.ingress.connections).toBe(2));
    await eventually(() => expect(stand.ingress.queuedBytes).toBeGreaterThan(1000));
    await stand.clock.advance(2 * EDGE_LIMITS.SESSION_TICK_MS);
    expect([stand.ingress.connections, stand.ingress.totals.shed, stand.ingress.queuedBytes]).toEqual([1, 1, 0]);
  });
});
