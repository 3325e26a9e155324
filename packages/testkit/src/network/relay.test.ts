import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deterministicBytes, hashOf } from '../chance/deterministic-bytes.ts';
import { eventually } from '../time/eventually.ts';
import { type Relay, startRelay } from './relay.ts';
import { startEchoServer, startSinkServer, startSourceServer, type TcpServer } from './tcp-servers.ts';

let echo: TcpServer;
let relay: Relay;
const dialled: Socket[] = [];

const dial = async (port: number): Promise<Socket> => {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  dialled.push(socket);
  await once(socket, 'connect');
  return socket;
};

beforeEach(async () => {
  echo = await startEchoServer();
  relay = await startRelay({ target: echo });
});

afterEach(async () => {
  for (const socket of dialled.splice(0)) socket.destroy();
  await relay.close();
  await echo.close();
});

describe('the test relay', () => {
  it('passes bytes and half-close on', async () => {
    const socket = await dial(relay.port);
    const bytes = deterministicBytes(3_000_000, 5);
    socket.end(bytes);
    expect(hashOf(await buffer(socket))).toBe(hashOf(bytes));
    await eventually(() => expect([relay.openConnections, echo.openConnections]).toEqual([0, 0]));
  });

  it('closes both sides on cut(), and accepts the next connection', async () => {
    const socket = await dial(relay.port);
    await eventually(() => expect(echo.openConnections).toBe(1));
    relay.cut();
    socket.resume();
    await once(socket, 'end');
    await eventually(() => expect(echo.openConnections).toBe(0));
    const next = await dial(relay.port);
    next.write('again');
    expect(String((await once(next, 'data'))[0])).toBe('again');
  });

  it('resets connections on resetAll()', async () => {
    const socket = await dial(relay.port);
    await eventually(() => expect(echo.openConnections).toBe(1));
    const failure = once(socket, 'error');
    relay.resetAll();
    expect(await failure).toMatchObject([{ code: 'ECONNRESET' }]);
  });

  it('stops both directions during a blackhole, and delivers the bytes afterwards', async () => {
    const socket = await dial(relay.port);
    socket.write('one');
    expect(String((await once(socket, 'data'))[0])).toBe('one');
    relay.blackhole();
    socket.write('two');
    const late = await dial(relay.port);
    late.write('three');
    let heard = '';
    for (const each of [socket, late]) each.setEncoding('utf8').on('data', (text: string) => (heard += text));
    // By the time of this response, a working link would have delivered the earlier bytes.
    const other = await dial(echo.port);
    other.write('x');
    await once(other, 'data');
    expect([heard, socket.closed, echo.openConnections]).toEqual(['', false, 2]);
    relay.restore();
    await eventually(() => expect(heard.split(/(?=t)/).sort()).toEqual(['three', 'two']));
  });

  it('passes on a close during a blackhole only afterwards', async () => {
    const socket = await dial(relay.port);
    socket.write('one');
    await once(socket, 'data');
    relay.blackhole();
    socket.destroy();
    const other = await dial(echo.port);
    other.write('x');
    await once(other, 'data');
    expect(echo.openConnections).toBe(2);
    relay.restore();
    await eventually(() => expect(echo.openConnections).toBe(1));
  });

  it('identifies connections by first bytes, and can reset a single connection', async () => {
    const first = await dial(relay.port);
    const second = await dial(relay.port);
    for (const [socket, text] of [
      [first, 'GET /a'],
      [second, 'GET /b'],
    ] as const) {
      socket.write(text);
      await once(socket, 'data');
    }
    expect(relay.connections.map(({ opening }) => opening)).toEqual(['GET /a', 'GET /b']);
    const failure = once(first, 'error');
    relay.connections.find(({ opening }) => opening === 'GET /a')?.reset();
    expect(await failure).toMatchObject([{ code: 'ECONNRESET' }]);
    second.write('still here');
    expect(String((await once(second, 'data'))[0])).toBe('still here');
  });

  it('resets the visitor on lose(), while the other side sees nothing', async () => {
    const socket = await dial(relay.port);
    socket.write('one');
    await once(socket, 'data');
    const failure = once(socket, 'error');
    for (const connection of relay.connections) connection.lose();
    expect(await failure).toMatchObject([{ code: 'ECONNRESET' }]);
    const next = await dial(relay.port);
    next.write('two');
    await once(next, 'data');
    expect([relay.openConnections, echo.openConnections]).toEqual([1, 2]);
    await relay.close();
    await eventually(() => expect(echo.openConnections).toBe(0));
  });

  it('delays each direction', async () => {
    relay.delayMs = 25;
    const socket = await dial(relay.port);
    const sentAt = performance.now();
    socket.write('x');
    await once(socket, 'data');
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(49);
  });
});

describe('the source and sink servers', () => {
  it('send the bytes of a seed, and report their count and hash', async () => {
    const source = await startSourceServer(1_000_000, 9);
    const sink = await startSinkServer();
    const from = await dial(source.port);
    const to = await dial(sink.port);
    from.pipe(to);
    const expected = hashOf(deterministicBytes(1_000_000, 9));
    await eventually(() => expect(sink.connections).toEqual([{ bytes: 1_000_000, hash: expected, ended: 'finished' }]));
    expect(sink.totalBytes()).toBe(1_000_000);
    await source.close();
    await sink.close();
  });

  it('stop reading on request until they start again', async () => {
    const sink = await startSinkServer();
    sink.stopReading();
    const socket = await dial(sink.port);
    // The bytes fit into the socket buffers of any system.
    socket.end(deterministicBytes(10_000, 3));
    await once(socket, 'finish');
    expect(sink.totalBytes()).toBe(0);
    sink.startReading();
    await eventually(() => expect(sink.totalBytes()).toBe(10_000));
    await sink.close();
  });
});
