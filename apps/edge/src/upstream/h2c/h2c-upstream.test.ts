// Local services that speak unencrypted HTTP/2, behind HTTP/2 and HTTP/1.1 visitors.

import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as net from 'node:net';
import { deterministicBytes, eventually, freePort, hashOf } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { talk } from '../../ingress/http/http.fixture.ts';
import { ask, type HttpsStand, startHttpsStand, visitHttp2 } from '../../ingress/http/https.fixture.ts';
import { EDGE_LIMITS } from '../../limits.ts';
import { H2C_SESSION_IDLE_MS } from './h2c-connections.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Service {
  readonly stand: HttpsStand;
  readonly sessions: Set<http2.ServerHttp2Session>;
}

type OnStream = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void;

const startService = async (onStream: OnStream, settings: http2.Settings = {}): Promise<Service> => {
  const server = http2.createServer({ settings });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    onStream(stream, headers);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  return { stand: await startStand((server.address() as net.AddressInfo).port), sessions };
};

const startStand = async (port: number): Promise<HttpsStand> => {
  const stand = await startHttpsStand(port, { http: { localProtocol: 'h2c' } });
  cleanups.push(() => stand.stop());
  return stand;
};

const visit = (stand: HttpsStand): http2.ClientHttp2Session => {
  const session = visitHttp2(stand);
  cleanups.push(() => session.destroy());
  return session;
};

const echo: OnStream = (stream) => {
  stream.respond({ ':status': 200 });
  stream.pipe(stream);
};

describe('an HTTP/2 service behind an HTTP/2 visitor', () => {
  it('gets requests with forwarded headers, and 30 requests over one connection', async () => {
    let seen: http2.IncomingHttpHeaders = {};
    const { stand, sessions } = await startService((stream, headers) => {
      seen = headers;
      stream.respond({ ':status': 203, 'set-cookie': ['a', 'b'], 'x-private': 'kept' });
      stream.end('hello');
    });
    const session = visit(stand);
    const answers = await Promise.all(
      Array.from({ length: 30 }, () =>
        ask(session, { ':path': '/a?b', ':authority': 'web.localhost', te: 'trailers' }),
      ),
    );
    expect(answers[0]).toMatchObject({ status: 203, body: 'hello' });
    expect(answers[0]?.headers).toMatchObject({ 'set-cookie': ['a', 'b'], 'x-private': 'kept' });
    expect(seen).toMatchObject({
      ':method': 'GET',
      ':path': '/a?b',
      ':scheme': 'http',
      ':authority': 'web.localhost',
      te: 'trailers',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'web.localhost',
    });
    expect([stand.http.dials, sessions.size]).toEqual([1, 1]);
    expect(stand.http.tunnel.counters.bytes).toBeGreaterThan(1000);
  });

  it('exchanges large bodies and trailers in both directions', async () => {
    const { stand } = await startService((stream) => {
      let trailers: http2.IncomingHttpHeaders = {};
      stream.on('trailers', (given) => {
        trailers = given;
      });
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': String(trailers['x-check']) }));
      stream.pipe(stream);
    });
    const session = visit(stand);
    const sent = deterministicBytes(3_000_017, 9);
    for (const headers of [{}, { 'content-length': sent.length }]) {
      const answer = await ask(session, { ':method': 'POST', ...headers }, sent, { 'x-check': 'abc' });
      expect(hashOf(Buffer.from(answer.body, 'latin1'))).toBe(hashOf(sent));
      expect(answer.trailers).toMatchObject({ 'x-sum': 'abc' });
    }
  });

  it('can answer with 103, 204, a response to HEAD, and a head without a body', async () => {
    const { stand } = await startService((stream, headers) => {
      if (headers[':path'] === '/hint') stream.additionalHeaders({ ':status': 103, link: '</a>' });
      if (headers[':path'] === '/bare') stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true });
      else {
        stream.respond({ ':status': headers[':path'] === '/none' ? 204 : 200 });
        stream.end('body');
      }
    });
    const session = visit(stand);
    expect(await ask(session, { ':path': '/hint' })).toMatchObject({ interim: [103], body: 'body' });
    expect(await ask(session, { ':path': '/none' })).toMatchObject({ status: 204, body: '' });
    expect(await ask(session, { ':path': '/', ':method': 'HEAD' })).toMatchObject({ status: 200, body: '' });
    const bare = await ask(session, { ':path': '/bare' });
    expect(bare.headers).toMatchObject({ 'grpc-status': '5' });
    expect(bare.headers).not.toHaveProperty('content-length');
  });

  it('streams in both directions at once, message by message', async () => {
    const { stand } = await startService(echo);
    const stream = visit(stand).request({ ':method': 'POST' });
    for (const message of ['one', 'two', 'three']) {
      stream.write(message);
      const [answer] = await once(stream, 'data');
      expect(String(answer)).toBe(message);
    }
    stream.end();
    await once(stream.resume(), 'close');
    expect(stream.rstCode).toBe(0);
  });

  it('sees an abort by the visitor as an abort, not as the end of the body', async () => {
    let outcome = '';
    const { stand } = await startService((stream) => {
      stream.respond({ ':status': 200 });
      stream.write('first');
      stream.resume();
      stream.on('end', () => {
        outcome += 'end';
      });
      stream.on('aborted', () => {
        outcome += 'aborted';
      });
    });
    const stream = visit(stand).request({ ':method': 'POST' }, { waitForTrailers: true });
    stream.on('error', () => {});
    stream.write('the beginning');
    await once(stream, 'data');
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await eventually(() => expect(outcome).toContain('aborted'));
    expect(outcome).not.toMatch(/^end/);
  });

  it('that fails causes a 502 page before the response head and a reset after it', async () => {
    const { stand } = await startService((stream, headers) => {
      if (headers[':path'] === '/early') return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.write('half');
      setTimeout(() => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR), 20);
    });
    const session = visit(stand);
    const early = await ask(session, { ':path': '/early' });
    expect([early.status, early.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_CLOSED']);
    await expect(ask(session, { ':path': '/late' })).rejects.toThrow(
      `reset with ${http2.constants.NGHTTP2_INTERNAL_ERROR}`,
    );
  });
});

describe('connections to an HTTP/2 service', () => {
  it('are added when the existing connections have no free streams', async () => {
    const waiting: http2.ServerHttp2Stream[] = [];
    const { stand, sessions } = await startService(
      (stream, headers) => {
        stream.respond({ ':status': 200 });
        if (headers[':path'] === '/first') stream.end();
        else waiting.push(stream);
      },
      { maxConcurrentStreams: 10 },
    );
    const session = visit(stand);
    await ask(session, { ':path': '/first' });
    const answers = Promise.all(Array.from({ length: 35 }, () => ask(session, { ':path': '/' })));
    await eventually(() => expect(waiting).toHaveLength(35));
    expect(sessions.size).toBe(4);
    for (const stream of waiting) stream.end('done');
    expect(new Set((await answers).map(({ body }) => body))).toEqual(new Set(['done']));
  });

  it('wait for a slow upload, because the first-byte timeout covers only the service', async () => {
    const { stand } = await startService((stream) => {
      stream.resume();
      stream.on('end', () => {
        stream.respond({ ':status': 200 });
        stream.end('at last');
      });
    });
    const upload = visit(stand).request({ ':method': 'POST', ':path': '/' });
    const answered = once(upload, 'response');
    upload.write('first');
    await eventually(() => expect(stand.http.tunnel.counters.requests).toBe(1));
    await eventually(() => expect(stand.http.pair.edge.liveStreams).toBe(1));
    for (let i = 0; i < 5; i += 1) await stand.http.clock.advance(30_000);
    upload.end('last');
    expect((await answered)[0]).toMatchObject({ ':status': 200 });
  });

  it('time out with 504 if the service accepts the connection and never answers', async () => {
    const silent = net.createServer((socket) => void cleanups.push(() => socket.destroy()));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => silent.close());
    const stand = await startStand((silent.address() as net.AddressInfo).port);
    const upload = visit(stand).request({ ':method': 'POST', ':path': '/' });
    const answered = once(upload, 'response');
    upload.write('first');
    await eventually(() => expect(stand.http.dials).toBe(1));
    await eventually(async () => {
      await stand.http.clock.advance(61_000);
      expect(stand.http.ingress.totals.responses[5]).toBe(1);
    });
    expect((await answered)[0]).toMatchObject({ ':status': 504 });
  });

  it('close after a long idle time', async () => {
    const { stand, sessions } = await startService(echo);
    await ask(visit(stand), { ':method': 'POST' }, 'x');
    expect(sessions.size).toBe(1);
    await eventually(async () => {
      await stand.http.clock.advance(H2C_SESSION_IDLE_MS + 1000);
      expect([sessions.size, stand.http.pair.edge.liveStreams]).toEqual([0, 0]);
    });
  });

  it('close after the idle time even if a visitor left a fully sent response unread', async () => {
    let isSaid = false;
    const { stand, sessions } = await startService((stream) => {
      stream.on('close', () => {
        isSaid = true;
      });
      stream.respond({ ':status': 200 });
      // More bytes than the visitor takes, and fewer than the edge takes from a service for one stream.
      stream.end(Buffer.alloc(EDGE_LIMITS.HTTP2_STREAM_WINDOW_BYTES - 1));
    });
    const visitor = visit(stand);
    const call = visitor.request({ ':path': '/' });
    call.on('error', () => {});
    await once(call, 'response');
    await eventually(() => expect(isSaid).toBe(true));
    visitor.destroy();
    await eventually(() => expect(stand.http.ingress.connections).toBe(0));
    await eventually(async () => {
      await stand.http.clock.advance(H2C_SESSION_IDLE_MS + 1000);
      expect([sessions.size, stand.http.pair.edge.liveStreams]).toEqual([0, 0]);
    });
  });

  it('are replaced after the service has hung up between two requests', async () => {
    const { stand, sessions } = await startService((stream) => {
      stream.respond({ ':status': 200 });
      stream.end('fine');
    });
    const session = visit(stand);
    expect((await ask(session, { ':path': '/' })).body).toBe('fine');
    for (const one of sessions) one.destroy();
    expect((await ask(session, { ':path': '/' })).body).toBe('fine');
    expect(stand.http.dials).toBe(2);
  });

  it('fail with a 502 page if no service listens or the service does not speak HTTP/2', async () => {
    const plain = http.createServer((_request, response) => response.end('hello'));
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => plain.close());
    const stand = await startStand((plain.address() as net.AddressInfo).port);
    const session = visit(stand);
    const answer = await ask(session, { ':path': '/', accept: 'application/json' });
    expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_MALFORMED']);
    expect(answer.body).toContain('h2c');
    stand.http.localPort = await freePort();
    const none = await ask(session, { ':path': '/' });
    expect([none.status, none.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_UNREACHABLE']);
  });
});

describe('an HTTP/2 service behind an HTTP/1.1 visitor', () => {
  it('gets trailers, and answers in chunks with trailers', async () => {
    const { stand } = await startService((stream) => {
      let body = '';
      stream.on('data', (chunk: Buffer) => {
        body += String(chunk);
      });
      stream.on('trailers', (trailers) => {
        body += ` and ${String(trailers['x-check'])}`;
      });
      stream.on('end', () => {
        stream.respond({ ':status': 200, 'content-type': 'text/plain' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }));
        stream.end(`got ${body}`);
      });
    });
    const request =
      'POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n' +
      '3\r\nabc\r\n3\r\ndef\r\n0\r\nx-check: ok\r\n\r\n';
    const answer = await talk(stand.http.port, request);
    expect(answer).toMatch(/^HTTP\/1\.1 200 \r\ncontent-type: text\/plain\r\n/);
    expect(answer).toMatch(/transfer-encoding: chunked/i);
    expect(answer).toMatch(/\r\n\r\n11\r\ngot abcdef and ok\r\n0\r\nx-sum: 1\r\n\r\n$/);
  });

  it('keeps one connection for responses with a length and responses without a body', async () => {
    const { stand } = await startService((stream, headers) => {
      if (headers[':path'] === '/bare') stream.respond({ ':status': 200 }, { endStream: true });
      else {
        stream.respond({ ':status': 200, 'content-length': '5' });
        stream.end('hello');
      }
    });
    const get = (path: string, extra = ''): string => `GET ${path} HTTP/1.1\r\nHost: web.localhost\r\n${extra}\r\n`;
    const answer = await talk(stand.http.port, get('/bare') + get('/a') + get('/bare', 'Connection: close\r\n'));
    expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(3);
    expect(answer.match(/(?<=content-length: )\d/gi)).toEqual(['0', '5', '0']);
    expect(stand.http.dials).toBe(1);
  });
});
