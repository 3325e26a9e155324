// A complete path from visitor socket to local socket over real carriers: unchanged bytes, isolated streams, and cuts in the middle.

import * as net from 'node:net';
import { systemClock } from '@tunnel/runtime';
import {
  deterministicBytes,
  eventually,
  hashOf,
  type PairKind,
  rethrow,
  type SessionPair,
  sessionPair,
  startEchoServer,
} from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { splice } from '../bytes/splice.ts';
import { allowStaticReads } from '../native/node-internals.ts';
import { connectSocket } from '../socket/connect-socket.ts';
import { adoptSocket } from '../socket/socket-duplex.ts';
import type { MuxStream } from '../stream/mux-stream.ts';

const MiB = 1024 * 1024;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  allowStaticReads(true);
});

interface Path extends SessionPair {
  readonly port: number;
  readonly resets: number;
}

/** Starts a listener in front of the edge's session, and connects the client's session to a local service. */
const startPath = async (kind: PairKind, carriers: number, localPort: number): Promise<Path> => {
  const dial = (stream: MuxStream): void => {
    connectSocket({ host: '127.0.0.1', port: localPort, timeoutMs: 5000, clock: systemClock }).then(
      (local) => {
        stream.accept();
        splice(stream, local, { onDone: () => {}, abandon: rethrow });
      },
      (error: NodeJS.ErrnoException) => stream.refuse({ code: 'dial-refused', text: error.code ?? '' }),
    );
  };
  const pair = await sessionPair({ kind, carriers, client: { onStream: dial } });
  let resets = 0;
  const server = net.createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) => {
    const visitor = adoptSocket(socket);
    const refused = { onRefused: () => visitor.reset({ code: 'peer-reset', text: 'refused' }), abandon: rethrow };
    const onDone = ({ ended }: { ended: string }): void => {
      if (ended === 'reset') resets += 1;
    };
    const head = { tunnelId: 'tun_1', visitor: 'v' };
    pair.edge.open(head, {
      ...refused,
      onOpened: (stream) => void splice(visitor, stream, { onDone, abandon: rethrow }),
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(
    () => pair.close(),
    () => server.close(),
  );
  return Object.assign(pair, {
    port: (server.address() as net.AddressInfo).port,
    get resets() {
      return resets;
    },
  });
};

/** Sends the bytes, half-closes, and returns the hash of the received bytes. */
const roundTrip = (port: number, bytes: Buffer): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('end', () => resolve(hashOf(Buffer.concat(chunks))));
    socket.on('error', reject);
    socket.end(bytes);
  });

describe.each([
  { kind: 'plain', reads: 'static' },
  { kind: 'plain', reads: 'fallback' },
  { kind: 'tls', reads: 'static' },
  { kind: 'tls', reads: 'fallback' },
] as const)('a session over $kind carriers with $reads reads', ({ kind, reads }) => {
  it('carries 40 echo streams at once without a change, and then holds no streams', async () => {
    allowStaticReads(reads === 'static');
    const echo = await startEchoServer();
    cleanups.push(() => echo.close());
    const path = await startPath(kind, 4, echo.port);
    const sent = Array.from({ length: 40 }, (_, i) => deterministicBytes(MiB / 4 + i * 1009, i + 1));
    const back = await Promise.all(sent.map((bytes) => roundTrip(path.port, bytes)));
    expect(back).toEqual(sent.map(hashOf));
    await eventually(() => expect([path.edge.liveStreams, path.client.liveStreams]).toEqual([0, 0]));
    expect([path.edge.budget.committedBytes, path.client.budget.committedBytes]).toEqual([0, 0]);
  });

  it('keeps other streams moving within bounded memory while some readers stall', async () => {
    allowStaticReads(reads === 'static');
    const echo = await startEchoServer();
    cleanups.push(() => echo.close());
    const path = await startPath(kind, 1, echo.port);
    const bytes = deterministicBytes(24 * MiB, 9);
    const stalled = Array.from({ length: 20 }, () => {
      const socket = net.connect({ port: path.port, host: '127.0.0.1' });
      socket.on('error', () => {});
      socket.pause();
      socket.write(bytes);
      return socket;
    });
    cleanups.push(() => stalled.forEach((socket) => socket.destroy()));
    await eventually(() => expect(path.edge.liveStreams).toBe(20));
    const small = deterministicBytes(1 * MiB, 10);
    expect(await roundTrip(path.port, small)).toBe(hashOf(small));
    expect(path.edge.budget.committedBytes).toBeLessThanOrEqual(path.edge.budget.limitBytes);
  });

  it('resets only the streams of a carrier that was cut', async () => {
    allowStaticReads(reads === 'static');
    const echo = await startEchoServer();
    cleanups.push(() => echo.close());
    const path = await startPath(kind, 2, echo.port);
    const sockets = Array.from({ length: 2 }, () => net.connect({ port: path.port, host: '127.0.0.1' }));
    cleanups.push(() => sockets.forEach((socket) => socket.destroy()));
    const answers = [0, 0];
    const errors: string[] = [];
    sockets.forEach((socket, i) => {
      socket.on('data', (chunk: Buffer) => (answers[i] = (answers[i] ?? 0) + chunk.length));
      socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''));
      socket.write('hello');
    });
    await eventually(() => expect(answers).toEqual([5, 5]));
    path.carriers[0]?.destroy('cut by the test');
    await eventually(() => expect(errors).toEqual(['ECONNRESET']));
    sockets.forEach((socket) => socket.destroyed || socket.write('again'));
    await eventually(() => expect(answers.toSorted((a, b) => b - a)).toEqual([10, 5]));
    expect([path.edge.liveCarriers, path.client.liveCarriers]).toEqual([1, 1]);
  });

  it('passes resets through in both directions', async () => {
    allowStaticReads(reads === 'static');
    const seen: string[] = [];
    const locals: net.Socket[] = [];
    const local = net.createServer((socket) => {
      locals.push(socket);
      socket.on('error', (error: NodeJS.ErrnoException) => seen.push(`local ${error.code}`));
      socket.resume();
    });
    await new Promise<void>((resolve) => local.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => local.close());
    const path = await startPath(kind, 1, (local.address() as net.AddressInfo).port);
    const first = net.connect({ port: path.port, host: '127.0.0.1' });
    await eventually(() => expect(locals).toHaveLength(1));
    first.resetAndDestroy();
    await eventually(() => expect(seen).toEqual(['local ECONNRESET']));
    const second = net.connect({ port: path.port, host: '127.0.0.1' });
    second.on('error', (error: NodeJS.ErrnoException) => seen.push(`visitor ${error.code}`));
    await eventually(() => expect(locals).toHaveLength(2));
    locals[1]?.resetAndDestroy();
    await eventually(() => expect(seen).toEqual(['local ECONNRESET', 'visitor ECONNRESET']));
  });

  it('resets the visitor when the local service cannot be reached', async () => {
    allowStaticReads(reads === 'static');
    const path = await startPath(kind, 1, 1);
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => {
      net.connect({ port: path.port, host: '127.0.0.1' }).on('error', resolve);
    });
    expect(error.code).toBe('ECONNRESET');
    expect(path.edge.liveStreams).toBe(0);
  });
});
