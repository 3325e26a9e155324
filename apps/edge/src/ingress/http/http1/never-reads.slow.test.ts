// An HTTP/1.1 visitor that never reads. The edge queues only a little data for the visitor, and the next request waits.

import * as net from 'node:net';
import { ERROR_CODES, Fault } from '@tunnel/errors';
import { redirectToHttps } from '@tunnel/http1';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../../limits.ts';
import type { EdgeReply } from '../../../routing/http-router.ts';
import { HTTP_INTERIM_HEADS_MAX } from '../../../upstream/upstream-request.ts';
import { type HttpStand, startHttpStand } from '../http.fixture.ts';
import { HTTP_QUEUE_MAX_BYTES } from './http1-response.ts';
import { Http1Visitor } from './http1-visitor.ts';
import { StalledVisitor } from './stalled-visitor.fixture.ts';

const { HTTP_SEND_TIMEOUT_MS, HTTP_STALLED_BODY_MS, SESSION_TICK_MS } = EDGE_LIMITS;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const VISITOR = { address: '203.0.113.7', scheme: 'http', isProxy: false } as const;

const enter = (stand: HttpStand, isTls: boolean, roomBytes = 0): StalledVisitor => {
  const end = new StalledVisitor(isTls, roomBytes);
  new Http1Visitor(end, VISITOR, stand.ingress).start();
  return end;
};

/** Starts an edge that answers every request with the same reply, without a service. */
const startOwn = async (answer: EdgeReply): Promise<HttpStand> => {
  const router = { visitorOf: () => VISITOR, route: () => answer };
  const stand = await startHttpStand(1, { router });
  cleanups.push(() => stand.stop());
  return stand;
};

/** Starts a service that calls `onRequest` once per connection, when the first bytes of a request arrive. */
const startService = async (onRequest: (socket: net.Socket) => void): Promise<HttpStand> => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => onRequest(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stand = await startHttpStand((server.address() as net.AddressInfo).port);
  cleanups.push(
    () => server.close(),
    () => stand.stop(),
  );
  return stand;
};

const GET = 'GET / HTTP/1.1\r\nHost: web.edge.test\r\n\r\n';
const answersIn = ({ text }: StalledVisitor): number => text.match(/HTTP\/1\.1 [2-5]\d\d/g)?.length ?? 0;

const ANSWERS: [string, EdgeReply][] = [
  ...ERROR_CODES.map((code): [string, EdgeReply] => [code, { fault: new Fault(code), retryAfterSecs: 1 }]),
  ['the way to https', { response: redirectToHttps({ host: 'web.edge.test', path: '/' }, 8443) }],
];

describe.each([
  ['plain', false],
  ['TLS', true],
])('%s', (_, isTls) => {
  it.each(ANSWERS)(
    'one response waits for a visitor that does not read, and later requests wait too: %s',
    async (_code, answer) => {
      const stand = await startOwn(answer);
      const visitor = enter(stand, isTls);
      for (let at = 0; at < 20; at += 1) expect(visitor.send(GET.repeat(200))).toBe(true);
      expect(answersIn(visitor)).toBe(1);
      expect(visitor.mostQueuedBytes).toBeLessThanOrEqual(HTTP_QUEUE_MAX_BYTES);
      // More requests came than the edge keeps, so the connection ends, and the kept requests are not answered either.
      visitor.takeMore(1_000_000);
      expect([answersIn(visitor), visitor.isEnded, stand.ingress.totals.overruns]).toEqual([1, true, 0]);
    },
  );

  it('a visitor gets as many responses as it reads, in order', async () => {
    const stand = await startOwn({ fault: new Fault('TUNNEL_NOT_FOUND', { host: 'here' }) });
    const visitor = enter(stand, isTls);
    visitor.send(GET.repeat(5) + GET.slice(0, 20));
    for (let at = 1; at <= 5; at += 1) {
      expect(answersIn(visitor)).toBe(at);
      visitor.takeMore(visitor.queuedBytes);
    }
    visitor.send(GET.slice(20));
    expect(answersIn(visitor)).toBe(6);
  });

  it.each([
    ['400', 'GET / HTTP/1.1\r\nHost : web\r\n\r\n'],
    ['431', `GET / HTTP/1.1\r\nHost: web\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`],
    ['501', 'CONNECT web:1 HTTP/1.1\r\nHost: web\r\n\r\n'],
    ['505', 'GET / HTTP/3.1\r\nHost: web\r\n\r\n'],
  ])('bytes after a request that got %s are read and dropped', async (status, bad) => {
    const stand = await startOwn({ fault: new Fault('TUNNEL_NOT_FOUND') });
    const visitor = enter(stand, isTls);
    expect(visitor.send(bad)).toBe(true);
    for (let at = 0; at < 100; at += 1) expect(visitor.send('x'.repeat(60_000))).toBe(true);
    expect(visitor.text).toContain(`HTTP/1.1 ${status}`);
    expect(answersIn(visitor)).toBe(1);
    expect([visitor.isEnded, visitor.isReset]).toEqual([true, false]);
  });

  it('a slow request head gets a single 408', async () => {
    const stand = await startOwn({ fault: new Fault('TUNNEL_NOT_FOUND') });
    const end = new StalledVisitor(isTls);
    const visitor = new Http1Visitor(end, VISITOR, stand.ingress);
    visitor.start();
    end.send('GET / HTTP/1.1\r\nHost: web');
    for (let at = 0; at < 100; at += 1) {
      await stand.clock.advance(SESSION_TICK_MS);
      visitor.tick(stand.clock.monotonic());
    }
    expect([answersIn(end), end.text.slice(0, 12)]).toEqual([1, 'HTTP/1.1 408']);
  });

  it('a service that sends too many interim heads causes 502', async () => {
    let written = 0;
    const stand = await startService((socket) => {
      const more = (): void => {
        while (
          !socket.destroyed &&
          written < 50_000 &&
          socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
        ) {
          written += 1;
        }
      };
      socket.on('drain', more);
      more();
    });
    const visitor = enter(stand, isTls);
    visitor.send(GET);
    await eventually(() => expect(visitor.text).toContain('HTTP/1.1 502'));
    expect(visitor.text.match(/HTTP\/1\.1 103/g)).toHaveLength(HTTP_INTERIM_HEADS_MAX);
    expect(visitor.mostQueuedBytes).toBeLessThanOrEqual(HTTP_QUEUE_MAX_BYTES);
    expect(stand.ingress.totals.overruns).toBe(0);
  });

  it('a service that sends large interim heads causes 502, and the queue stays bounded', async () => {
    const head = `HTTP/1.1 103 Early Hints\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`;
    const stand = await startService((socket) => socket.write(head.repeat(20)));
    const visitor = enter(stand, isTls);
    visitor.send(GET);
    await eventually(() => expect(visitor.text).toContain('HTTP/1.1 502'));
    expect(visitor.mostQueuedBytes).toBeLessThanOrEqual(HTTP_QUEUE_MAX_BYTES);
  });

  it('a response body and its trailers pause while the visitor does not read, and then continue', async () => {
    let written = 0;
    const chunk = `2000\r\n${'y'.repeat(0x2000)}\r\n`;
    const stand = await startService((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      const more = (): void => {
        while (written < 2_000) {
          written += 1;
          if (!socket.write(chunk)) return;
        }
        socket.removeListener('drain', more);
        socket.write('0\r\nx-trailer: last\r\n\r\n');
      };
      socket.on('drain', more);
      more();
    });
    const visitor = enter(stand, isTls);
    visitor.send(GET + GET);
    let before = -1;
    await eventually(
      () => {
        const seen = before;
        before = visitor.queuedBytes;
        expect([seen > 0, seen]).toEqual([true, visitor.queuedBytes]);
      },
      { intervalMs: 200 },
    );
    // The limit covers the credit of the stream and a small buffer of the edge.
    expect(visitor.mostQueuedBytes).toBeLessThanOrEqual(2 * HTTP_QUEUE_MAX_BYTES);
    expect(written).toBeLessThan(2_000);
    visitor.takeAll();
    await eventually(() => expect(visitor.text.includes('x-trailer: last')).toBe(true));
    expect(stand.ingress.totals.overruns).toBe(0);
  });
});

describe('time limits for a visitor that does not read', () => {
  const ticking = async (stand: HttpStand, visitor: Http1Visitor, ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 10 * SESSION_TICK_MS) {
      await stand.clock.advance(10 * SESSION_TICK_MS);
      visitor.tick(stand.clock.monotonic());
    }
  };

  it.each([
    ['an answer that is complete', GET],
    ['our last word', 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'],
  ])(
    'a visitor that takes no byte of %s for 5 minutes is reset; a few bytes keep the connection',
    async (_, request) => {
      const stand = await startOwn({ fault: new Fault('TUNNEL_NOT_FOUND') });
      const end = new StalledVisitor(false);
      const visitor = new Http1Visitor(end, VISITOR, stand.ingress);
      visitor.start();
      end.send(request);
      for (let at = 0; at < 5; at += 1) {
        await ticking(stand, visitor, HTTP_SEND_TIMEOUT_MS - 20_000);
        end.takeMore(10);
        expect([end.isReset, end.queuedBytes > 0]).toEqual([false, true]);
      }
      await ticking(stand, visitor, HTTP_SEND_TIMEOUT_MS + 20_000);
      expect(end.isReset).toBe(true);
    },
  );

  it('an upload that its service does not read ends after 5 minutes without a byte in either direction', async () => {
    const stand = await startService((socket) => {
      socket.pause();
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun');
    });
    const end = new StalledVisitor(false, 1_000_000);
    const visitor = new Http1Visitor(end, VISITOR, stand.ingress);
    visitor.start();
    end.send(`POST / HTTP/1.1\r\nHost: web.edge.test\r\nContent-Length: ${2 ** 30}\r\n\r\n`);
    await eventually(() => {
      if (end.isRead) end.send('z'.repeat(60_000));
      expect([end.isRead, end.text.includes('begun')]).toEqual([false, true]);
    });
    expect(visitor.describe()).toMatchObject({ phase: 'body', waitsFor: 'the service to read the body' });
    await ticking(stand, visitor, HTTP_STALLED_BODY_MS - 20_000);
    expect(end.isReset).toBe(false);
    await ticking(stand, visitor, 40_000);
    expect(end.isReset).toBe(true);
    await eventually(() =>
      expect([stand.pair.edge.liveStreams, stand.tunnel.counters.openConnections]).toEqual([0, 0]),
    );
  });
});
