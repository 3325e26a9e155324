// Tests of WebSockets through a tunnel: after the upgrade, the edge passes bytes unchanged.
import { once } from 'node:events';
import { deterministicBytes, eventually, hashOf } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { WebSocket, type WebSocketServer } from 'ws';
import { echoSockets, openHttp, type PublicEndpoint, startWeb, type WebService } from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';

const shared = new Harness();
let stack: Stack;
let web: WebService;
let sockets: WebSocketServer;
let tunnel: TunnelProgram;
let endpoint: PublicEndpoint;

beforeAll(async () => {
  stack = await shared.stack();
  web = shared.use(await startWeb((_, response) => void response.end('not a WebSocket')));
  sockets = echoSockets(web);
  sockets.on('connection', (socket, request) => {
    if (request.url === '/bye') socket.close(4001, 'as you asked');
  });
  ({ tunnel, endpoint } = await openHttp(shared, stack, web.port));
});
afterAll(() => shared.close());

/** Opens a WebSocket without waiting for the service. */
const begin = (path: string, options: { perMessageDeflate?: boolean } = {}): WebSocket => {
  const socket = new WebSocket(`ws://127.0.0.1:${endpoint.port}${path}`, {
    headers: { host: endpoint.host },
    ...options,
  });
  return socket.on('error', () => {});
};

const dial = async (...args: Parameters<typeof begin>): Promise<WebSocket> => {
  const socket = begin(...args);
  await once(socket, 'open');
  return socket;
};

const nextMessage = async (socket: WebSocket): Promise<{ data: Buffer; isBinary: boolean }> => {
  const [data, isBinary] = (await once(socket, 'message')) as [Buffer, boolean];
  return { data, isBinary };
};

const closeOf = async (socket: WebSocket): Promise<{ code: number; reason: string }> => {
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
  return { code, reason: reason.toString() };
};

describe.concurrent('a WebSocket', () => {
  it('carries text and binary messages and keeps their types', async () => {
    const socket = await dial('/echo');
    socket.send('Grüße');
    expect(await nextMessage(socket)).toEqual({ data: Buffer.from('Grüße'), isBinary: false });
    socket.send(Buffer.from([0, 1, 255]));
    expect(await nextMessage(socket)).toEqual({ data: Buffer.from([0, 1, 255]), isBinary: true });
    socket.terminate();
  });

  it.for([true, false])('carries a message of 5 MB byte for byte (deflate: %s)', async (perMessageDeflate) => {
    const socket = await dial('/echo', { perMessageDeflate });
    const bytes = deterministicBytes(5_000_000, 6);
    socket.send(bytes);
    expect(hashOf((await nextMessage(socket)).data)).toBe(hashOf(bytes));
    socket.terminate();
  });

  it('carries a message in 300 fragments', async () => {
    const socket = await dial('/echo');
    const bytes = deterministicBytes(300_000, 7);
    const heard = nextMessage(socket);
    for (let at = 0; at < bytes.length; at += 1000) {
      socket.send(bytes.subarray(at, at + 1000), { fin: at + 1000 >= bytes.length, binary: true });
    }
    expect(hashOf((await heard).data)).toBe(hashOf(bytes));
    socket.terminate();
  });

  it('carries pings and pongs in both directions', async () => {
    const pinged = new Promise<string>((resolve) => {
      sockets.on('connection', (local, request) => {
        if (request.url !== '/ping') return;
        local.on('pong', (data) => resolve(data.toString()));
        local.ping('from the service');
      });
    });
    const socket = await dial('/ping');
    socket.ping('from the visitor');
    expect(String((await once(socket, 'pong'))[0])).toBe('from the visitor');
    expect(await pinged).toBe('from the service');
    socket.terminate();
  });

  it('passes the close code and reason from either side', async () => {
    expect(await closeOf(begin('/bye'))).toEqual({ code: 4001, reason: 'as you asked' });
    const closed = new Promise((resolve) => {
      sockets.on('connection', (socket, request) => {
        if (request.url !== '/mine') return;
        socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
      });
    });
    const visitor = await dial('/mine');
    const ended = closeOf(visitor);
    visitor.close(4002, 'enough');
    expect(await closed).toEqual({ code: 4002, reason: 'enough' });
    expect(await ended).toEqual({ code: 4002, reason: 'enough' });
  });

  it('is closed at the service with 1006 if the visitor vanishes', async () => {
    const closed = new Promise<number>((resolve) => {
      sockets.on('connection', (socket, request) => {
        if (request.url === '/vanish') socket.on('close', (code) => resolve(code));
      });
    });
    (await dial('/vanish')).terminate();
    // Close code 1006 means a connection without a close frame.
    expect(await closed).toBe(1006);
  });

  it('exchanges messages beside 49 other WebSockets', async () => {
    const all = await Promise.all(Array.from({ length: 50 }, () => dial('/echo')));
    const echoed = all.map(async (socket, index) => {
      for (let nth = 0; nth < 20; nth += 1) {
        socket.send(`${index}:${nth}`);
        expect((await nextMessage(socket)).data.toString()).toBe(`${index}:${nth}`);
      }
    });
    await Promise.all(echoed);
    for (const socket of all) socket.terminate();
  });

  it('rejected by the service gives the visitor the response of the service', async ({ harness }) => {
    const plain = harness.use(await startWeb(() => {}));
    plain.server.on('upgrade', (_, socket) => {
      socket.on('error', () => {});
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno');
    });
    const other = await openHttp(harness, stack, plain.port);
    const socket = new WebSocket(`ws://127.0.0.1:${other.endpoint.port}/`, { headers: { host: other.endpoint.host } });
    const [error] = (await once(socket, 'error')) as [Error];
    expect(error.message).toContain('403');
  });
});

describe('after all WebSockets', () => {
  it('each WebSocket was reported as a request with status 101, and no connection remains', async () => {
    await eventually(async () => expect(await stack.metric('tunnel_active_connections')).toBe(0));
    expect(tunnel.events('request').every(({ status, aborted }) => status === 101 && aborted === false)).toBe(true);
    expect(sockets.clients.size).toBe(0);
  });
});
