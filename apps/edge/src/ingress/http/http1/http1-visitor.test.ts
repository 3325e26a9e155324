// HTTP/1.1 visitors over real sockets, with a real service behind a real session.
import * as http from 'node:http';
import * as net from 'node:net';
import { deterministicBytes, eventually, hashOf } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpStand, startHttpStand, talk } from '../http.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const startService = async (onRequest: http.RequestListener): Promise<HttpStand> => {
  const server = http.createServer(onRequest);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return startStand((server.address() as net.AddressInfo).port);
};

const startRawService = async (onConnection: (socket: net.Socket) => void): Promise<HttpStand> => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  return startStand((server.address() as net.AddressInfo).port);
};

const startStand = async (port: number): Promise<HttpStand> => {
  const stand = await startHttpStand(port);
  cleanups.push(() => stand.stop());
  return stand;
};

const STATUS_OF: Readonly<Record<string, number>> = { '/204': 204, '/304': 304 };

const get = (path: string, extra = ''): string => `GET ${path} HTTP/1.1\r\nHost: web.edge.test\r\n${extra}\r\n`;

describe('HTTP/1.1 requests and responses', () => {
  it('pass through the edge, and the service gets forwarded headers', async () => {
    let seen: http.IncomingMessage | undefined;
    const { port } = await startService((request, response) => {
      seen = request;
      response.end('hello');
    });
    const answer = await talk(port, get('/a?b=c', 'X-Forwarded-For: 9.9.9.9\r\nConnection: close\r\n'));
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer.endsWith('\r\n\r\nhello')).toBe(true);
    expect(seen?.url).toBe('/a?b=c');
    expect(seen?.headers).toMatchObject({
      host: 'web.edge.test',
      'x-forwarded-for': '9.9.9.9, 127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'web.edge.test',
    });
  });

  it('stay in order when pipelined, over one connection to the service', async () => {
    const stand = await startService((request, response) => {
      setTimeout(() => response.end(`answer ${request.url}`), request.url === '/1' ? 30 : 0);
    });
    const answer = await talk(stand.port, get('/1') + get('/2') + get('/3', 'Connection: close\r\n'));
    expect(answer.match(/answer \/\d/g)).toEqual(['answer /1', 'answer /2', 'answer /3']);
    expect(stand.dials).toBe(1);
    expect(stand.tunnel.counters.requests).toBe(3);
  });

  it('carry bodies with a length and in chunks unchanged in both directions', async () => {
    const { port } = await startService((request, response) => {
      request.pipe(response);
    });
    const sent = deterministicBytes(3_000_017, 7);
    const send = (headers: http.OutgoingHttpHeaders): Promise<string> =>
      new Promise((resolve, reject) => {
        const request = http.request({ port, host: '127.0.0.1', method: 'POST', headers }, (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('end', () => resolve(hashOf(Buffer.concat(chunks))));
        });
        request.on('error', reject);
        request.end(sent);
      });
    const host = { host: 'web.edge.test' };
    expect(await send({ ...host, 'content-length': sent.length })).toBe(hashOf(sent));
    expect(await send({ ...host, 'transfer-encoding': 'chunked' })).toBe(hashOf(sent));
  });

  it('pass 100 (Continue) on before the body is sent', async () => {
    const { port } = await startService((request, response) => {
      request.pipe(response);
    });
    const order: string[] = [];
    const answer = await new Promise<string>((resolve, reject) => {
      const headers = { host: 'web.edge.test', expect: '100-continue', 'content-length': 4 };
      const request = http.request({ port, host: '127.0.0.1', method: 'PUT', headers }, (response) => {
        response.setEncoding('utf8').on('data', resolve);
      });
      request.on('continue', () => {
        order.push('continue');
        request.end('body');
      });
      request.on('error', reject);
      request.flushHeaders();
    });
    expect([answer, order]).toEqual(['body', ['continue']]);
  });

  it('have no body for HEAD, 204 and 304, and the connection stays usable', async () => {
    const { port } = await startService((request, response) => {
      if (request.method === 'HEAD') response.setHeader('content-length', 100);
      response.statusCode = STATUS_OF[request.url ?? ''] ?? 200;
      response.end(request.url === '/last' ? 'last' : undefined);
    });
    const head = get('/head').replace('GET', 'HEAD');
    const answer = await talk(port, head + get('/204') + get('/304') + get('/last', 'Connection: close\r\n'));
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 204', 'HTTP/1.1 304', 'HTTP/1.1 200']);
    expect(answer.endsWith('\r\n\r\nlast')).toBe(true);
  });

  it('that end with the connection of the service also end the connection of the visitor', async () => {
    const { port } = await startRawService((socket) => {
      socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\n\r\nuntil the end'));
    });
    const answer = await talk(port, get('/'));
    expect(answer).toMatch(/connection: close/i);
    expect(answer.endsWith('\r\n\r\nuntil the end')).toBe(true);
  });

  it('reach an HTTP/1.0 visitor without chunks', async () => {
    const { port } = await startService((_, response) => {
      response.write('one ');
      response.end('two');
    });
    const answer = await talk(port, 'GET / HTTP/1.0\r\nHost: web.edge.test\r\n\r\n');
    expect(answer).not.toMatch(/transfer-encoding/i);
    expect(answer.endsWith('\r\n\r\none two')).toBe(true);
  });

  it('are streamed: an event arrives before the service sends the next event', async () => {
    let go: () => void = () => {};
    const { port } = await startService((_, response) => {
      response.setHeader('content-type', 'text/event-stream');
      response.write('data: 1\n\n');
      go = () => void response.end('data: 2\n\n');
    });
    const socket = net.connect({ port, host: '127.0.0.1' });
    cleanups.push(() => socket.destroy());
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString();
    });
    socket.write(get('/events'));
    await eventually(() => expect(answer).toContain('data: 1'));
    expect(answer).not.toContain('data: 2');
    go();
    await eventually(() => expect(answer).toContain('data: 2'));
  });

  it('can switch protocols and then carry bytes in both directions, including early bytes', async () => {
    const { port } = await startRawService((socket) => {
      socket.once('data', (chunk: Buffer) => {
        expect(chunk.toString()).toMatch(/upgrade: echo/i);
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello ');
        socket.pipe(socket);
      });
    });
    const request = get('/', 'Connection: Upgrade\r\nUpgrade: echo\r\n');
    expect(await talk(port, `${request}early`, 'hello early')).toMatch(/^HTTP\/1\.1 101 /);
  });
});

describe('HTTP/1.1 errors', () => {
  it('an unknown host gets 404 and a host with an absent client gets 502, as a page or as JSON', async () => {
    const stand = await startService((_, response) => response.end());
    stand.held.add('away');
    const unknown = await talk(stand.port, 'GET / HTTP/1.1\r\nHost: nobody.edge.test\r\nConnection: close\r\n\r\n');
    expect(unknown).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
    expect(unknown).toMatch(/x-tunnel-error: TUNNEL_NOT_FOUND\r\n/);
    expect(unknown).toContain('<!doctype html>');
    const away = await talk(
      stand.port,
      'GET / HTTP/1.1\r\nHost: away.edge.test\r\nAccept: application/json\r\nConnection: close\r\n\r\n',
    );
    expect(away).toMatch(/^HTTP\/1\.1 502 /);
    expect(JSON.parse(away.split('\r\n\r\n')[1] ?? '')).toMatchObject({ code: 'TUNNEL_AWAY' });
  });

  it('a service that is down causes 502 at once, and the visitor can retry on the same connection', async () => {
    const stand = await startStand(1);
    const answer = await talk(stand.port, get('/') + get('/', 'Connection: close\r\n'));
    expect(answer.match(/HTTP\/1\.1 502/g)).toHaveLength(2);
    expect(answer).toContain('LOCAL_UNREACHABLE');
  });

  it('a slow service causes 504 after the first-byte timeout', async () => {
    const stand = await startService(() => {});
    const answer = talk(stand.port, get('/', 'Connection: close\r\n'));
    await eventually(() => expect(stand.dials).toBe(1));
    await eventually(async () => {
      await stand.clock.advance(61_000);
      expect(stand.ingress.totals.responses[5]).toBe(1);
    });
    expect(await answer).toMatch(/^HTTP\/1\.1 504 /);
  });

  it('a visitor can take ten minutes for its body, because the time of the service starts afterwards', async () => {
    const stand = await startService((request, response) => {
      request.resume();
      request.on('end', () => response.end('served'));
    });
    const visitor = net.connect({ port: stand.port, host: '127.0.0.1' });
    cleanups.push(() => visitor.destroy());
    let answer = '';
    visitor.on('data', (bytes: Buffer) => (answer += bytes.toString()));
    visitor.write('POST / HTTP/1.1\r\nHost: web.edge.test\r\nContent-Length: 2\r\n\r\na');
    await eventually(() => expect(stand.dials).toBe(1));
    for (let minute = 0; minute < 10; minute += 1) await stand.clock.advance(60_000);
    visitor.write('b');
    await eventually(() => expect(answer).toContain('served'));
    expect(stand.ingress.totals.responses[5]).toBe(0);
  });

  it('a service that stops reading a body and sends nothing causes 504', async () => {
    const stand = await startRawService((socket) => socket.pause());
    const visitor = net.connect({ port: stand.port, host: '127.0.0.1' });
    cleanups.push(() => visitor.destroy());
    let answer = '';
    visitor.on('data', (bytes: Buffer) => (answer += bytes.toString()));
    visitor.on('error', () => {});
    visitor.write('POST / HTTP/1.1\r\nHost: web.edge.test\r\nContent-Length: 100000000\r\n\r\n');
    visitor.write(Buffer.alloc(100_000_000));
    await eventually(async () => {
      await stand.clock.advance(10_000);
      expect(answer).toMatch(/^HTTP\/1\.1 504 /);
    });
  });

  it('a malformed response causes 502, and its connection is not used again', async () => {
    const stand = await startRawService((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx'));
    });
    const answer = await talk(stand.port, get('/') + get('/', 'Connection: close\r\n'));
    expect(answer.match(/HTTP\/1\.1 502/g)).toHaveLength(2);
    expect(stand.dials).toBe(2);
  });

  it('a malformed request gets a 400 that the visitor can read, and then a close', async () => {
    const { port } = await startService((_, response) => response.end());
    const answer = await talk(port, 'GET / HTTP/1.1\r\nHost : web.edge.test\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/connection: close/);
  });

  it('a visitor that leaves causes an abort at the service', async () => {
    let isAborted = false;
    const stand = await startService((request, response) => {
      response.write('part');
      request.on('close', () => {
        isAborted = !response.writableEnded;
      });
    });
    await talk(stand.port, get('/'), 'part');
    await eventually(() => expect(isAborted).toBe(true));
    await eventually(() => expect(stand.ingress.connections).toBe(0));
    expect(stand.tunnel.counters.openConnections).toBe(0);
  });

  it('a GET is retried if the service closed its idle connection, but a POST gets 502', async () => {
    let requests = 0;
    const stand = await startRawService((socket) => {
      let served = 0;
      socket.on('data', () => {
        served += 1;
        requests += 1;
        // The service closes a connection when a second request arrives.
        if (served === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        else socket.destroy();
      });
    });
    const twice = await talk(stand.port, get('/1') + get('/2', 'Connection: close\r\n'));
    expect(twice.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200']);
    expect([requests, stand.dials]).toEqual([3, 2]);
    const post = 'POST / HTTP/1.1\r\nHost: web.edge.test\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx';
    const third = await talk(stand.port, get('/3') + post);
    expect(third.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 502']);
  });

  it('a slow request head gets 408', async () => {
    const stand = await startService((_, response) => response.end());
    const answer = talk(stand.port, 'GET / HTTP/1.1\r\nHost: web');
    await eventually(() => expect(stand.ingress.connections).toBe(1));
    await eventually(async () => {
      await stand.clock.advance(16_000);
      expect(stand.ingress.totals.responses[4]).toBe(1);
    });
    expect(await answer).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('a response that is malformed right after its head causes 502, and the head is not sent', async () => {
    const stand = await startRawService((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n'));
    });
    const answer = await talk(stand.port, get('/1') + get('/2', 'Connection: close\r\n'));
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 502', 'HTTP/1.1 502']);
    expect(answer).toMatch(/x-tunnel-error: LOCAL_MALFORMED/);
    expect(stand.ingress.totals.responses).toEqual([0, 0, 0, 0, 0, 2]);
    expect(stand.dials).toBe(2);
  });

  it('a malformed request body after half a response cuts the connection off without a second response', async () => {
    const { port } = await startRawService((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it'));
    });
    const visitor = net.connect(port, '127.0.0.1');
    cleanups.push(() => visitor.destroy());
    let heard = '';
    visitor.on('data', (piece: Buffer) => (heard += piece.toString()));
    visitor.on('error', () => {});
    visitor.write('POST / HTTP/1.1\r\nHost: web.edge.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    await eventually(() => expect(heard).toContain('half of it'));
    visitor.write('not a size\r\n');
    await eventually(() => expect(visitor.destroyed).toBe(true));
    expect(heard.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(heard.endsWith('half of it')).toBe(true);
  });

  it('a response before the end of the request body closes the connection afterwards', async () => {
    const stand = await startRawService((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno'));
    });
    const answer = await talk(stand.port, 'POST / HTTP/1.1\r\nHost: web.edge.test\r\nContent-Length: 100000\r\n\r\nx');
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toMatch(/connection: close/i);
    expect(answer.endsWith('no')).toBe(true);
  });
});

describe('an edge that shuts down', () => {
  it('finishes responses and pipelined requests before it closes the connections', async () => {
    const slow: http.ServerResponse[] = [];
    const stand = await startService((_request, response) => {
      response.write('begun ');
      slow.push(response);
    });
    const alone = talk(stand.port, get('/alone'));
    const pipelined = talk(stand.port, get('/first') + get('/second'));
    await eventually(() => expect(slow).toHaveLength(2));
    await eventually(() => expect(stand.ingress.totals.responses[2]).toBe(2));
    stand.ingress.drain();
    for (const response of slow.splice(0)) response.end('ended');
    expect(await alone).toMatch(/begun .*ended/s);
    await eventually(() => expect(slow).toHaveLength(1));
    slow[0]?.end('ended');
    expect((await pipelined).match(/begun/g)).toHaveLength(2);
    expect((await pipelined).match(/connection: close/gi)).toHaveLength(1);
    await stand.ingress.whenIdle();
  });
});
