// A visitor's socket, the relay, a real session and a local service: the bytes that pass, the counters, and the end of a connection.

import { text } from 'node:stream/consumers';
import type { MuxStream } from '@tunnel/mux';
import {
  deterministicBytes,
  eventually,
  hashOf,
  rethrow,
  startEchoServer,
  startSinkServer,
  startTcpServer,
} from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import {
  dialling,
  endOf,
  expectOver as expectNothingLeft,
  type Member,
  type OnStream,
  type PathLimits,
  passSilence,
  RelayStage,
  type RelayStand,
  refusing,
} from './relay.fixture.ts';

const MiB = 1024 * 1024;
const stage = new RelayStage();
afterEach(() => stage.clear());
const kept = <T extends { close(): unknown }>(thing: T): T => stage.kept(thing);

type Path = RelayStand & Member;

const startPath = async (onStream: OnStream, limits?: PathLimits): Promise<Path> => {
  const member = await stage.startMember(onStream);
  const stand = await stage.startRelay(member.tunnel, limits === undefined ? {} : { limits });
  return { ...stand, ...member };
};

const expectOver = (path: Path): Promise<void> => expectNothingLeft(path, [path]);

describe('bytes of a TCP connection', () => {
  it('pass unchanged in both directions, with the half-close, and are counted', async () => {
    const echo = kept(await startEchoServer());
    const path = await startPath(dialling(echo.port));
    const sent = deterministicBytes(3 * MiB + 17, 1);
    const visitor = path.visit();
    visitor.end(sent);
    const chunks: Buffer[] = [];
    for await (const chunk of visitor) chunks.push(chunk as Buffer);
    expect(hashOf(Buffer.concat(chunks))).toBe(hashOf(sent));
    await expectOver(path);
    expect(path.tunnel.counters).toMatchObject({ requests: 1, bytes: 2 * sent.length });
    expect(path.relay.totals).toMatchObject({ requests: 1, bytesToClient: sent.length, bytesToVisitor: sent.length });
  });

  it('are counted while they flow', async () => {
    const sink = kept(await startSinkServer());
    const path = await startPath(dialling(sink.port));
    path.visit().write(Buffer.alloc(100_000));
    await eventually(() =>
      expect(path.tunnel.counters).toMatchObject({
        requests: 1,
        bytes: 100_000,
        openConnections: 1,
        pendingFailover: 0,
      }),
    );
    expect(path.relay.totals.bytesToClient).toBe(100_000);
  });

  it('that come before the local service has answered wait for it, with the half-close', async () => {
    let answer: OnStream = () => {};
    const stream = new Promise<MuxStream>((resolve) => {
      answer = resolve;
    });
    const path = await startPath(answer);
    const visitor = path.visit();
    visitor.end('GET / HTTP/1.0\r\n\r\n');
    const offered = await stream;
    const echo = kept(await startEchoServer());
    dialling(echo.port)(offered);
    expect(await text(visitor)).toBe('GET / HTTP/1.0\r\n\r\n');
  });

  it('from a local service that speaks first arrive before the visitor sends any', async () => {
    const greeter = kept(await startTcpServer((socket) => socket.end('220 hello')));
    const path = await startPath(dialling(greeter.port));
    expect(await text(path.visit())).toBe('220 hello');
  });

  it('go to a client that gets the address of the visitor', async () => {
    const echo = kept(await startEchoServer());
    const path = await startPath(dialling(echo.port));
    const visitor = path.visit();
    await eventually(() => expect(path.heads).toHaveLength(1));
    expect(path.heads).toEqual([{ tunnelId: 'tun_1', visitor: `127.0.0.1:${visitor.localPort}` }]);
  });
});

describe('a TCP visitor is reset', () => {
  it('when the client could not dial', async () => {
    const path = await startPath(refusing);
    const ended = endOf(path.visit());
    await passSilence(path);
    expect(await ended).toBe('ECONNRESET');
    expect(path.relay.totals.refused.get('dial-refused')).toBe(1);
    await expectOver(path);
  });

  it('when the client is away', async () => {
    const path = await startPath(() => {});
    path.upstream.mux = null;
    const ended = endOf(path.visit());
    await passSilence(path);
    expect(await ended).toBe('ECONNRESET');
    expect(path.relay.totals.refused.get('no-carrier')).toBe(1);
    expect(path.tunnel.counters.requests).toBe(0);
    await expectOver(path);
  });

  it('when the client does not answer in time', async () => {
    const path = await startPath(() => {});
    const ended = endOf(path.visit());
    await eventually(() => expect(path.heads).toHaveLength(1));
    path.pair.edge.tick(performance.now() + 20_000);
    await passSilence(path);
    expect(await ended).toBe('ECONNRESET');
    await expectOver(path);
  });

  it('when the local service resets', async () => {
    const sink = kept(await startSinkServer());
    const path = await startPath(dialling(sink.port));
    const visitor = path.visit();
    visitor.write('hello');
    await eventually(() => expect(sink.totalBytes()).toBe(5));
    sink.resetConnections();
    expect(await endOf(visitor)).toBe('ECONNRESET');
    await expectOver(path);
  });

  it('when the tunnel or the address has reached its connection limit', async () => {
    const sink = kept(await startSinkServer());
    for (const [limits, reason] of [
      [{ perTunnel: 2, perAddress: 100 }, 'tunnel-limit'],
      [{ perTunnel: 100, perAddress: 2 }, 'address-limit'],
    ] as const) {
      const path = await startPath(dialling(sink.port), limits);
      const first = path.visit();
      path.visit();
      await eventually(() => expect(path.relay.connections).toBe(2));
      expect(await endOf(path.visit())).toBe('ECONNRESET');
      const refused: ReadonlyMap<string, number> =
        reason === 'tunnel-limit' ? path.relay.totals.refused : path.gate.admission.refusals;
      expect(refused.get(reason)).toBe(1);
      first.destroy();
      await eventually(() => expect(path.relay.connections).toBe(1));
      path.visit().write('room again');
      await eventually(() => expect(path.tunnel.counters).toMatchObject({ requests: 3, bytes: 10 }));
    }
  });
});

describe('a TCP visitor that leaves', () => {
  it('before the local service has answered cancels the stream', async () => {
    const ends: string[] = [];
    const path = await startPath((stream) => {
      stream.read({
        onData: () => true,
        onDrain: () => {},
        onEnd: () => ends.push('end'),
        onReset: (reason) => ends.push(reason.code),
        abandon: rethrow,
      });
    });
    const visitor = path.visit();
    await eventually(() => expect(path.heads).toHaveLength(1));
    visitor.resetAndDestroy();
    await eventually(() => expect(ends).toEqual(['cancelled']));
    await expectOver(path);
  });

  it('during the connection causes a reset at the local service', async () => {
    const errors: string[] = [];
    const local = kept(
      await startTcpServer((socket) => {
        socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''));
        socket.resume();
      }),
    );
    const path = await startPath(dialling(local.port));
    const visitor = path.visit();
    visitor.write('hello');
    await eventually(() => expect(path.tunnel.counters.bytes).toBe(5));
    visitor.resetAndDestroy();
    await eventually(() => expect(errors).toEqual(['ECONNRESET']));
    await expectOver(path);
  });
});

describe('the shutdown of a relay', () => {
  it('waits for the last connection, and a slow visitor gets its last byte', async () => {
    const bytes = deterministicBytes(8 * MiB, 2);
    const source = kept(
      await startTcpServer((socket) => {
        socket.resume();
        socket.end(bytes);
      }),
    );
    const path = await startPath(dialling(source.port));
    const visitor = path.visit();
    visitor.pause();
    visitor.end();
    await eventually(() => expect(path.tunnel.counters.bytes).toBeGreaterThan(0));
    let idle = false;
    const waited = path.relay.whenIdle().then(() => {
      idle = true;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of visitor) {
      if (chunks.length === 0) expect(idle).toBe(false);
      chunks.push(chunk as Buffer);
    }
    expect(hashOf(Buffer.concat(chunks))).toBe(hashOf(bytes));
    await waited;
    await expectOver(path);
  });

  it('can reset all remaining connections, open or still waiting', async () => {
    const sink = kept(await startSinkServer());
    let dial = true;
    const path = await startPath((stream) => {
      if (dial) dialling(sink.port)(stream);
    });
    const joined = path.visit();
    joined.write('hello');
    await eventually(() => expect(sink.totalBytes()).toBe(5));
    dial = false;
    const waiting = path.visit();
    await eventually(() => expect(path.heads).toHaveLength(2));
    const ends = [endOf(joined), endOf(waiting)];
    path.relay.resetAll();
    expect(path.relay.connections).toBe(0);
    expect(await Promise.all(ends)).toEqual(['ECONNRESET', 'ECONNRESET']);
    await path.relay.whenIdle();
    await expectOver(path);
  });
});

it('an open connection outlives its session while the carrier lives', async () => {
  const echo = kept(await startEchoServer());
  const path = await startPath(dialling(echo.port));
  const visitor = path.visit();
  visitor.write('one');
  await eventually(() => expect(path.tunnel.counters.bytes).toBe(6));
  path.upstream.mux = null;
  visitor.end('two');
  expect(await text(visitor)).toBe('onetwo');
});
