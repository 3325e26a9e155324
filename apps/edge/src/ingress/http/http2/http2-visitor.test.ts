// HTTP/2 visitors over real TLS sockets, with a real HTTP/1.1 service behind a real session.
import { once } from 'node:events';
import * as http from 'node:http';
import { type ClientHttp2Session, constants } from 'node:http2';
import * as net from 'node:net';
import { deterministicBytes, eventually, hashOf } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { ask, type HttpsStand, startHttpsStand, visitHttp2 } from '../https.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const startService = async (onRequest: http.RequestListener): Promise<HttpsStand> => {
  const server = http.createServer(onRequest);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return startStand((server.address() as net.AddressInfo).port);
};

const startRawService = async (onConnection: (socket: net.Socket) => void): Promise<HttpsStand> => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  return startStand((server.address() as net.AddressInfo).port);
};

const startStand = async (port: number): Promise<HttpsStand> => {
  const stand = await startHttpsStand(port);
  cleanups.push(() => stand.stop());
  return stand;
};

const visit = (stand: HttpsStand, authority?: string): ClientHttp2Session => {
  const session = visitHttp2(stand, authority);
  cleanups.push(() => session.destroy());
  return session;
};

it('an HTTP/2 connection counts once in a tunnel for 300 host names, and no more after its end', async () => {
  const stand = await startService((_, response) => void response.end('hello'));
  const session = visit(stand);
  for (let from = 0; from < 300; from += 100) {
    const names = Array.from({ length: 100 }, (_, index) => `${from + index}-web.localhost`);
    const answers = await Promise.all(names.map((name) => ask(session, { ':authority': name })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  }
  expect(stand.http.tunnel.counters).toMatchObject({ requests: 300, openConnections: 1 });
  session.destroy();
  await eventually(() => expect(stand.http.tunnel.counters.openConnections).toBe(0));
});

it('an HTTP/2 connection counts in at most 128 tunnels at once, and in none after its end', async () => {
  const server = http.createServer((_, response) => void response.end('hello'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  // The tunnels belong to the same client, differ only by id, and share counters.
  const stage: { stand?: HttpsStand } = {};
  const at = ({ name }: { readonly name: string }): object | undefined =>
    stage.stand && (Object.create(stage.stand.http.tunnel, { tunnelId: { value: name } }) as object);
  const stand = await startHttpsStand((server.address() as net.AddressInfo).port, { tunnels: { at } as never });
  cleanups.push(() => stand.stop());
  stage.stand = stand;
  const session = visit(stand);
  for (let n = 0; n < 200; n += 1) await ask(session, { ':authority': `t${n}.localhost` });
  expect(stand.http.tunnel.counters).toMatchObject({ requests: 200, openConnections: 128 });
  session.destroy();
  await eventually(() => expect(stand.http.tunnel.counters.openConnections).toBe(0));
});

describe('HTTP/2 requests and responses', () => {
  it('are converted to HTTP/1.1 for the service, with forwarded headers and one cookie field', async () => {
    let seen: http.IncomingMessage | undefined;
    const stand = await startService((request, response) => {
      seen = request;
      response.writeHead(200, 'fine', [
        ...['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Connection', 'keep-alive, X-Private', 'X-Private', 'no'],
        ...['Keep-Alive', 'timeout=5', 'X-Text', 'caf\xe9', 'Content-Length', '5'],
      ]);
      // The body is a Buffer, because Node.js would send the head of a text response in UTF-8 too.
      response.end(Buffer.from('hello'));
    });
    const session = visit(stand);
    const cookie = ['a=1', 'b=2'];
    const answer = await ask(session, {
      ':path': '/a?b=c',
      ':authority': 'web.localhost',
      te: 'trailers',
      cookie,
      'x-forwarded-for': '9.9.9.9',
    });
    expect(answer).toMatchObject({ status: 200, body: 'hello' });
    expect(answer.headers).toMatchObject({ 'set-cookie': ['a=1', 'b=2'], 'x-text': 'caf\xe9', 'content-length': '5' });
    const names = answer.raw.filter((_, at) => at % 2 === 0);
    expect(names.sort()).toEqual([':status', 'content-length', 'date', 'set-cookie', 'set-cookie', 'x-text'].sort());
    expect(seen?.url).toBe('/a?b=c');
    expect(seen?.headers).toMatchObject({
      host: 'web.localhost',
      cookie: 'a=1; b=2',
      te: 'trailers',
      'x-forwarded-for': '9.9.9.9, 127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'web.localhost',
    });
    expect(stand.http.tunnel.counters).toMatchObject({ requests: 1, openConnections: 1 });
    session.close();
    await eventually(() => expect(stand.http.tunnel.counters.openConnections).toBe(0));
  });

  it('carry bodies with and without a length unchanged, 20 at once', async () => {
    const stand = await startService((request, response) => {
      if (request.headers['content-length'] !== undefined) {
        response.setHeader('content-length', request.headers['content-length']);
      }
      request.pipe(response);
    });
    const session = visit(stand);
    const sent = deterministicBytes(400_017, 7);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        ask(session, { ':method': 'POST', ...(at % 2 === 0 ? { 'content-length': sent.length } : {}) }, sent),
      ),
    );
    for (const answer of answers) expect(hashOf(Buffer.from(answer.body, 'latin1'))).toBe(hashOf(sent));
    expect(answers[0]?.headers['content-length']).toBe(String(sent.length));
    expect(stand.http.tunnel.counters).toMatchObject({ requests: 20, openConnections: 1 });
  });

  it('carry trailers in both directions', async () => {
    const stand = await startService((request, response) => {
      request.resume();
      request.on('end', () => {
        response.writeHead(200, { trailer: 'x-sum' });
        response.write('a body');
        response.addTrailers({ 'x-sum': request.trailers['x-check'] ?? 'none' });
        response.end();
      });
    });
    const answer = await ask(visit(stand), { ':method': 'POST' }, 'hi', { 'x-check': 'abc', 'content-type': 'late' });
    expect(answer).toMatchObject({ body: 'a body', trailers: { 'x-sum': 'abc' } });
    expect(answer.headers).not.toHaveProperty('transfer-encoding');
  });

  it('pass 100 and 103 on', async () => {
    const stand = await startService((_request, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' });
      response.end('done');
    });
    const answer = await ask(visit(stand), { ':method': 'POST', expect: '100-continue' }, 'hi');
    expect(answer).toMatchObject({ status: 200, interim: [100, 103], body: 'done' });
  });

  it('have no body for HEAD, 204, 205 and 304, and the connection to the service stays open', async () => {
    const stand = await startService((request, response) => {
      response.statusCode = Number(request.url?.slice(1));
      if (request.method === 'HEAD' || response.statusCode === 304) response.setHeader('content-length', 1234);
      response.end();
    });
    const session = visit(stand);
    const head = await ask(session, { ':method': 'HEAD', ':path': '/200' });
    expect([head.status, head.headers['content-length'], head.body]).toEqual([200, '1234', '']);
    for (const status of [204, 205, 304]) {
      expect(await ask(session, { ':path': `/${status}` })).toMatchObject({ status, body: '' });
    }
    expect(stand.http.dials).toBe(1);
  });

  it('end without an error when the service answers before the request is complete', async () => {
    const stand = await startService((_request, response) => {
      response.writeHead(413, { connection: 'close' });
      response.end('too much');
    });
    const stream = visit(stand).request({ ':method': 'POST' });
    stream.on('error', () => {});
    stream.write('the beginning');
    let body = '';
    stream.on('data', (chunk: Buffer) => {
      body += String(chunk);
    });
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    await once(stream, 'close');
    expect([headers[':status'], body, stream.rstCode]).toEqual([413, 'too much', constants.NGHTTP2_NO_ERROR]);
  });
});

describe('HTTP/2 errors', () => {
  it('have the same statuses and codes as in HTTP/1.1, and the connection continues', async () => {
    const stand = await startService((_request, response) => response.end('fine'));
    const session = visit(stand);
    const unknown = await ask(session, { ':authority': 'other.localhost', accept: 'application/json' });
    expect([unknown.status, unknown.headers['x-tunnel-error']]).toEqual([404, 'TUNNEL_NOT_FOUND']);
    expect(JSON.parse(unknown.body)).toMatchObject({ code: 'TUNNEL_NOT_FOUND' });
    const mixed = await ask(session, { ':authority': 'web.localhost', host: 'other.localhost' });
    expect([mixed.status, mixed.headers['x-tunnel-error']]).toEqual([400, 'HTTP_BAD_REQUEST']);
    const large = await ask(session, { 'x-large': 'x'.repeat(33 * 1024) }, 'and a body');
    expect([large.status, large.headers['x-tunnel-error']]).toEqual([431, 'HTTP_HEAD_TOO_LARGE']);
    const head = await ask(session, { ':method': 'HEAD', ':authority': 'other.localhost' });
    expect([head.status, head.body]).toEqual([404, '']);
    expect(await ask(session, { ':path': '/' })).toMatchObject({ status: 200, body: 'fine' });
    expect(stand.http.tunnel.counters.requests).toBe(1);
  });

  it('are pages before the response head is sent, and resets afterwards', async () => {
    const stand = await startRawService((socket) => {
      socket.once('data', (chunk: Buffer) => {
        if (chunk.includes('GET /early')) socket.end();
        else if (chunk.includes('GET /chunked')) {
          socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n');
        } else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
      });
    });
    const session = visit(stand);
    const early = await ask(session, { ':path': '/early' });
    expect([early.status, early.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_CLOSED']);
    const reset = `reset with ${constants.NGHTTP2_INTERNAL_ERROR}`;
    await expect(ask(session, { ':path': '/length' })).rejects.toThrow(reset);
    await expect(ask(session, { ':path': '/chunked' })).rejects.toThrow(reset);
  });

  it('include a 504 when the service sends nothing in time', async () => {
    const stand = await startRawService(() => {});
    const session = visit(stand);
    const answer = ask(session, { ':path': '/' });
    await eventually(() => expect(stand.http.dials).toBe(1));
    // The time limit starts when the request has reached the service.
    await eventually(async () => {
      await stand.http.clock.advance(61_000);
      expect(stand.http.ingress.totals.responses[5]).toBe(1);
    });
    expect((await answer).headers['x-tunnel-error']).toBe('LOCAL_TIMEOUT');
  });

  it('an abort by the visitor reaches the service, and other requests continue', async () => {
    const gone: string[] = [];
    const stand = await startService((request, response) => {
      response.write('first');
      response.on('close', () => {
        if (!response.writableFinished) gone.push(String(request.url));
      });
      if (request.url === '/kept') setTimeout(() => response.end(' and last'), 100);
    });
    const session = visit(stand);
    const kept = ask(session, { ':path': '/kept' });
    const stream = session.request({ ':path': '/left' });
    await once(stream, 'data');
    stream.close(constants.NGHTTP2_CANCEL);
    await eventually(() => expect(gone).toEqual(['/left']));
    expect((await kept).body).toBe('first and last');
  });

  it('an abort in the middle of an upload does not look like the end of the body', async () => {
    let outcome = '';
    const stand = await startService((request) => {
      request.on('data', () => {
        outcome = 'begun';
      });
      request.on('end', () => {
        outcome = 'end';
      });
      request.on('error', () => {
        outcome = 'cut';
      });
    });
    // The Node.js client also marks the end of a body before a reset, unless the request waits for trailers.
    const stream = visit(stand).request({ ':method': 'POST' }, { waitForTrailers: true });
    stream.on('error', () => {});
    stream.write('the beginning');
    await eventually(() => expect(outcome).toBe('begun'));
    stream.close(constants.NGHTTP2_CANCEL);
    await eventually(() => expect(outcome).toBe('cut'));
  });
});
