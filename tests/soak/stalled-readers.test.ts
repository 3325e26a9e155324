// 2,000 visitors of a session request an endless response and never read it: memory stays bounded, and an additional visitor is served
// normally. Both sides of the session run in this process, so its memory counts twice.
// With ordinary kernel buffers, the 8,000 sockets would use up the kernel's memory for TCP and slow down every other program on the
// machine. Run this test in a separate network namespace with small buffers (CONTRIBUTING.md, "Long tests").

import * as net from 'node:net';
import { adoptSocket, connectSocket, MUX_LIMITS, type MuxStream, splice } from '@tunnel/mux';
import { systemClock } from '@tunnel/runtime';
import {
  deterministicBytes,
  eventually,
  hashOf,
  rethrow,
  sessionPair,
  startEchoServer,
  startTcpServer,
  type TcpServer,
} from '@tunnel/testkit';
import { afterAll, describe, expect, it } from 'vitest';

const VISITORS = 2000;
const MiB = 1024 * 1024;
const cleanups: (() => unknown)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Starts a server that writes the same bytes as long as the socket accepts them. */
const startEndlessServer = (): Promise<TcpServer> => {
  const bytes = deterministicBytes(64 * 1024, 1);
  return startTcpServer((socket) => {
    const pump = (): void => {
      while (socket.write(bytes));
    };
    socket.on('drain', pump);
    pump();
  });
};

const listen = async (onVisitor: (socket: net.Socket) => void): Promise<number> => {
  const server = net.createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, onVisitor);
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, resolve));
  cleanups.push(() => server.close());
  return (server.address() as net.AddressInfo).port;
};

const echoed = (port: number, bytes: Buffer): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('end', () => resolve(hashOf(Buffer.concat(chunks))));
    socket.on('error', reject);
    socket.end(bytes);
  });

describe.each(['plain', 'tls'] as const)('a session with %s carriers', (kind) => {
  it(`holds ${VISITORS} stalled readers within bounded memory and serves an additional visitor`, async () => {
    const endless = await startEndlessServer();
    const echo = await startEchoServer();
    cleanups.push(
      () => endless.close(),
      () => echo.close(),
    );
    const dial = async (stream: MuxStream, tunnelId: string): Promise<void> => {
      const port = tunnelId === 'endless' ? endless.port : echo.port;
      const local = await connectSocket({ host: '127.0.0.1', port, timeoutMs: 30_000, clock: systemClock });
      stream.accept();
      splice(stream, local, { onDone: () => {}, abandon: rethrow });
    };
    const pair = await sessionPair({
      kind,
      carriers: 4,
      client: { onStream: (stream, head) => void dial(stream, head.tunnelId) },
    });
    cleanups.push(() => pair.close());
    const portOf = (tunnelId: string): Promise<number> =>
      listen((socket) => {
        const visitor = adoptSocket(socket);
        const onOpened = (stream: MuxStream): void =>
          void splice(visitor, stream, { onDone: () => {}, abandon: rethrow });
        pair.edge.open(
          { tunnelId, visitor: '' },
          { onOpened, onRefused: () => visitor.reset({ code: 'timeout', text: '' }), abandon: rethrow },
        );
      });
    const endlessPort = await portOf('endless');
    const echoPort = await portOf('echo');
    const before = process.memoryUsage.rss();
    const visitors = Array.from({ length: VISITORS }, () =>
      net.connect({ port: endlessPort, host: '127.0.0.1' }).pause(),
    );
    visitors.forEach((socket) => socket.on('error', () => {}));
    cleanups.push(() => visitors.forEach((socket) => socket.destroy()));
    await eventually(() => expect(pair.edge.liveStreams).toBe(VISITORS), { timeoutMs: 60_000 });
    // All readers are stalled when memory has stopped growing for a while.
    let sent = -1;
    await eventually(
      () => {
        const last = sent;
        sent = process.memoryUsage.rss();
        expect(Math.abs(sent - last)).toBeLessThan(MiB);
      },
      { timeoutMs: 120_000, intervalMs: 2000 },
    );
    const bytes = deterministicBytes(8 * MiB, 2);
    expect(await echoed(echoPort, bytes)).toBe(hashOf(bytes));
    const grown = (process.memoryUsage.rss() - before) / MiB;
    const committed = pair.edge.budget.committedBytes / MiB;
    console.log(
      `${kind}: ${VISITORS} stalled readers: ${grown.toFixed(0)} MiB more, ${committed.toFixed(0)} MiB promised`,
    );
    expect(committed).toBeLessThan(
      MUX_LIMITS.SESSION_BUDGET_BYTES / MiB + (VISITORS * MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES) / MiB,
    );
    expect(grown).toBeLessThan(400);
  });
});
