// Requests that wait for a routing decision, because route() answers later. No byte is lost during the wait, and the edge notices a
// visitor that leaves.
import type { ClientHttp2Session } from 'node:http2';
import * as net from 'node:net';
import { Fault } from '@tunnel/errors';
import { eventually, hashOf, rethrow } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import type { RouteDecision } from '../../routing/http-router.ts';
import { type HttpStand, startHttpStand, talk } from './http.fixture.ts';
import { ask, startHttpsPort, visitHttp2 } from './https.fixture.ts';
import { type RecordingService, startRecordingService } from './service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Asked {
  readonly host: string;
  decide(): void;
  answer(decision: RouteDecision): void;
  fail(error: unknown): void;
}

/** Starts a stand in which every request waits in `asked` until the test decides. */
const setUp = async (
  listener?: Parameters<typeof startRecordingService>[1],
  report: (error: unknown, where: string) => void = rethrow,
): Promise<{ stand: HttpStand; service: RecordingService; asked: Asked[] }> => {
  const service = await startRecordingService('served', listener);
  const asked: Asked[] = [];
  const stand: HttpStand = await startHttpStand(service.port, {
    report,
    router: {
      visitorOf: (address, scheme) => ({ address, scheme, isProxy: false }),
      route: (visitor, { host }) =>
        new Promise<RouteDecision>((resolve, reject) => {
          const decide = (): void => resolve({ route: stand.tunnel, visitor });
          asked.push({ host, decide, answer: resolve, fail: reject });
        }),
    },
  });
  cleanups.push(
    () => service.close(),
    () => stand.stop(),
  );
  return { stand, service, asked };
};

const next = async (asked: readonly Asked[], at = 0): Promise<Asked> => {
  await eventually(() => expect(asked.length).toBeGreaterThan(at));
  return asked[at] as Asked;
};

const BODY = 'x'.repeat(300_000);

it.each([
  ['a length', `Content-Length: ${BODY.length}\r\n\r\n${BODY}`],
  ['chunks', `Transfer-Encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`],
])(
  'HTTP/1.1: a body with %s that arrives before the decision is passed on whole, apart from the next request',
  async (_, rest) => {
    const { stand, service, asked } = await setUp();
    const post = `POST /one HTTP/1.1\r\nHost: a\r\n${rest}`;
    const talking = talk(stand.port, `${post}GET /two HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n`);
    (await next(asked)).decide();
    (await next(asked, 1)).decide();
    const answer = await talking;
    expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
    expect(service.asked.map(({ url, bodyHash }) => [url, bodyHash])).toEqual([
      ['/one', hashOf(Buffer.from(BODY))],
      ['/two', hashOf(Buffer.alloc(0))],
    ]);
    expect(asked.map(({ host }) => host)).toEqual(['a', 'b']);
  },
);

it('HTTP/1.1: a visitor that waits for a decision is not read, so that buffers stay small', async () => {
  const { stand, asked } = await setUp();
  const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
  cleanups.push(() => socket.destroy());
  socket.on('error', () => {});
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 ** 30}\r\n\r\n`);
  await next(asked);
  const piece = Buffer.alloc(1024 * 1024);
  let written = 0;
  while (written < 64 && socket.write(piece)) written += 1;
  await eventually(() => expect(socket.writableLength).toBeGreaterThan(0));
  for (let n = 0; n < 64; n += 1) socket.write(piece);
  await new Promise((resolve) => setImmediate(resolve));
  // The remaining bytes wait in the visitor's own queue, because the kernel buffers hold only some MiB.
  expect(socket.writableLength).toBeGreaterThan(32 * 1024 * 1024);
});

it('HTTP/1.1: a visitor that leaves before the decision is forgotten, whatever the decision is', async () => {
  const { stand, service, asked } = await setUp();
  const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
  socket.on('error', () => {});
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const request = await next(asked);
  socket.end();
  await eventually(() => expect(stand.ingress.connections).toBe(0));
  request.decide();
  await new Promise((resolve) => setImmediate(resolve));
  expect([service.asked.length, stand.tunnel.counters.requests, stand.tunnel.counters.openConnections]).toEqual([
    0, 0, 0,
  ]);
});

it('HTTP/1.1: a decision to reject gets 404, and a failed decision gets 500', async () => {
  const { stand, asked } = await setUp();
  const GET = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
  const refused = talk(stand.port, GET);
  (await next(asked)).answer({ fault: new Fault('TUNNEL_NOT_FOUND', { host: 'a' }) });
  expect(await refused).toMatch(/^HTTP\/1\.1 404 /);
  const failed = talk(stand.port, GET);
  (await next(asked, 1)).fail(new Error('no'));
  expect(await failed).toMatch(/^HTTP\/1\.1 500 /);
});

it('HTTP/2: requests with bodies wait for decisions independently, and canceled requests are forgotten', async () => {
  const { stand, service, asked } = await setUp();
  const port = await startHttpsPort(stand.ingress);
  cleanups.push(() => port.stop());
  const session = visitHttp2({ port });
  cleanups.push(() => session.destroy());
  const posted = ask(session, { ':method': 'POST', ':path': '/one' }, BODY);
  const one = await next(asked);
  const got = ask(session, { ':path': '/two' });
  const two = await next(asked, 1);
  const left = session.request({ ':path': '/three' });
  left.on('error', () => {});
  const three = await next(asked, 2);
  left.close();
  two.decide();
  expect((await got).body).toBe('served');
  three.decide();
  one.decide();
  expect((await posted).body).toBe('served');
  expect(service.asked.map(({ url, bodyHash }) => [url, bodyHash])).toEqual([
    ['/two', hashOf(Buffer.alloc(0))],
    ['/one', hashOf(Buffer.from(BODY))],
  ]);
});

/** Waits until the edge has received the whole request, as far as it reads the request. */
const sent = async (session: ClientHttp2Session): Promise<void> => {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => session.ping(resolve));
};

it('HTTP/2: trailers that arrive before the decision are passed on, or get 400 if malformed', async () => {
  const { stand, asked } = await setUp((request, response) => response.end(JSON.stringify(request.trailers)));
  const port = await startHttpsPort(stand.ingress);
  cleanups.push(() => port.stop());
  const session = visitHttp2({ port });
  cleanups.push(() => session.destroy());
  const good = ask(session, { ':method': 'POST' }, 'body', { 'x-checksum': 'abc' });
  const first = await next(asked);
  await sent(session);
  first.decide();
  expect((await good).body).toBe('{"x-checksum":"abc"}');
  const bad = ask(session, { ':method': 'POST', accept: 'text/plain' }, 'body', { host: 'elsewhere' });
  const second = await next(asked, 1);
  await sent(session);
  second.decide();
  expect((await bad).status).toBe(400);
});

it('HTTP/1.1 and HTTP/2: requests that wait for a decision when the edge drains are still answered', async () => {
  const { stand, service, asked } = await setUp();
  const port = await startHttpsPort(stand.ingress);
  cleanups.push(() => port.stop());
  const session = visitHttp2({ port });
  cleanups.push(() => session.destroy());
  const got = ask(session, { ':path': '/two' });
  await next(asked);
  const talking = talk(stand.port, 'GET /one HTTP/1.1\r\nHost: a\r\n\r\n');
  await next(asked, 1);
  stand.ingress.drain();
  for (const { decide } of asked) decide();
  expect(await talking).toMatch(/^HTTP\/1\.1 200 [^]*connection: close/i);
  expect((await got).body).toBe('served');
  await stand.ingress.whenIdle();
  expect(service.asked).toHaveLength(2);
});

it.each(['HTTP/1.1', 'HTTP/2'])(
  '%s: a fault after the decision is answered with 500 and reported as visitor.decided',
  async (version) => {
    const reports: string[] = [];
    const { stand, asked } = await setUp(undefined, (_error, where) => reports.push(where));
    const get = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    const visit = async (): Promise<string> => {
      if (version === 'HTTP/1.1') return talk(stand.port, get);
      const port = await startHttpsPort(stand.ingress);
      const session = visitHttp2({ port }, 'a');
      cleanups.push(
        () => session.destroy(),
        () => port.stop(),
      );
      const { status, headers } = await ask(session, { ':path': '/' });
      return `${status} ${String(headers['x-tunnel-error'])}`;
    };
    const visiting = visit();
    // A decision without a route makes the edge throw.
    (await next(asked)).answer(undefined as unknown as RouteDecision);
    expect(await visiting).toMatch(/500 [\s\S]*INTERNAL/);
    expect(reports).toEqual(['visitor.decided']);
    await eventually(() => expect(stand.tunnel.counters.openConnections).toBe(0));
  },
);
