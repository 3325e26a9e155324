// The choice between handles and sockets on the installed Node.js version, and the fallback for missing internals. A change inside
// Node.js must fail these tests instead of raising the CPU cost unnoticed.

import { readFileSync } from 'node:fs';
import * as net from 'node:net';
import { systemClock } from '@tunnel/runtime';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { type AcceptedSocket, acceptingServer, adoptAccepted } from '../socket/accept-sockets.ts';
import { connectSocket } from '../socket/connect-socket.ts';
import { SocketDuplex } from '../socket/socket-duplex.ts';
import { dialHandle } from './dial-handle.ts';
import { HandleDuplex } from './handle-duplex.ts';
import { type Binding, findHandles, type HandleRequest, type NodeHandles, nodeHandles } from './node-handles.ts';
import { allowStaticReads } from './node-internals.ts';

const CUT = { code: 'cancelled', text: '' } as const;
const cleanups: (() => unknown)[] = [];
afterEach(() => {
  allowStaticReads(true);
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

const listen = async (
  host = '127.0.0.1',
): Promise<{ port: number; accepted: AcceptedSocket[]; server: net.Server }> => {
  const accepted: AcceptedSocket[] = [];
  const server = acceptingServer({
    keepAliveMs: 60_000,
    take: (socket) => void accepted.push(socket),
    report: rethrow,
    where: 'test.connection',
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  cleanups.push(() => {
    server.close();
    for (const socket of accepted) socket.destroy();
  });
  return { port: (server.address() as net.AddressInfo).port, accepted, server };
};

const real: Binding = (name) => (process as unknown as { binding: Binding }).binding(name);

describe('the choice between handles and sockets', () => {
  it('uses handles for accepted connections and for dials to an IP address', async () => {
    expect(nodeHandles()).not.toBeNull();
    const { port, accepted } = await listen();
    const dialled = await connectSocket({ host: '127.0.0.1', port, timeoutMs: 5000, clock: systemClock });
    expect(dialled).toBeInstanceOf(HandleDuplex);
    await eventually(() => expect(accepted).toHaveLength(1));
    expect(accepted[0]).toBeInstanceOf(HandleDuplex);
    dialled.reset(CUT);
  });

  it('uses Node.js sockets for host names, so that Node.js picks the address', async () => {
    const { port } = await listen();
    const dialled = await connectSocket({ host: 'localhost', port, timeoutMs: 5000, clock: systemClock });
    expect(dialled).toBeInstanceOf(SocketDuplex);
    dialled.reset(CUT);
  });

  it('uses Node.js sockets everywhere when static reads are off', async () => {
    allowStaticReads(false);
    const { port, accepted } = await listen();
    const dialled = await connectSocket({ host: '127.0.0.1', port, timeoutMs: 5000, clock: systemClock });
    expect(dialled).toBeInstanceOf(SocketDuplex);
    await eventually(() => expect(accepted).toHaveLength(1));
    expect(accepted[0]).toBeInstanceOf(net.Socket);
    dialled.reset(CUT);
  });
});

describe('findHandles', () => {
  it('finds handles on tested Node.js versions, and returns null on a newer version', () => {
    expect(findHandles(real)).not.toBeNull();
    expect(findHandles(real, '20.0.0')).not.toBeNull();
    expect(findHandles(real, '27.0.0')).toBeNull();
  });

  it('returns null without process bindings, or when they throw', () => {
    expect(findHandles(undefined)).toBeNull();
    expect(
      findHandles(() => {
        throw new Error('ERR_ACCESS_DENIED');
      }),
    ).toBeNull();
  });

  it.each(['WriteWrap', 'ShutdownWrap', 'streamBaseState', 'kReadBytesOrError', 'TCP', 'TCPConnectWrap', 'constants'])(
    'returns null without %s',
    (part) => {
      expect(findHandles((name) => ({ ...real(name), [part]: undefined }))).toBeNull();
    },
  );

  it.each(['useUserBuffer', 'writeBuffer', 'shutdown', 'reset', 'connect6'])('returns null without %s()', (method) => {
    const TCP = class {};
    const tcp = real('tcp_wrap')['TCP'] as { prototype: object };
    Object.setPrototypeOf(TCP.prototype, tcp.prototype);
    expect(findHandles((name) => (name === 'tcp_wrap' ? { ...real(name), TCP } : real(name)))).not.toBeNull();
    Object.defineProperty(TCP.prototype, method, { value: undefined });
    expect(findHandles((name) => (name === 'tcp_wrap' ? { ...real(name), TCP } : real(name)))).toBeNull();
  });
});

describe('an accepted connection on a handle', () => {
  it('knows its remote and local address, over IPv4 and IPv6', async () => {
    for (const host of ['127.0.0.1', '::1']) {
      const { port, accepted } = await listen(host);
      const peer = net.connect({ host, port });
      cleanups.push(() => peer.destroy());
      await eventually(() => expect([accepted.length, peer.connecting]).toEqual([1, false]));
      expect([accepted[0]?.remoteAddress, accepted[0]?.remotePort]).toEqual([host, peer.localPort]);
      expect([accepted[0]?.localAddress, accepted[0]?.localPort]).toEqual([host, port]);
    }
  });

  it.skipIf(process.platform !== 'linux')('uses TCP keep-alive as its listener is configured', async () => {
    const { port, accepted } = await listen();
    const peer = net.connect({ host: '127.0.0.1', port });
    cleanups.push(() => peer.destroy());
    await eventually(() => expect([accepted.length, peer.connecting]).toEqual([1, false]));
    const hex = (value: number): string => value.toString(16).toUpperCase().padStart(4, '0');
    const row = `0100007F:${hex(port)} 0100007F:${hex(peer.localPort ?? 0)} 01`;
    // The sixth column of /proc/net/tcp holds the active timer and its remaining time; 02 is the keep-alive timer.
    await eventually(() => {
      const line = readFileSync('/proc/net/tcp', 'latin1')
        .split('\n')
        .find((found) => found.includes(row));
      expect(line?.trim().split(/\s+/)[5]).toMatch(/^02:/);
    });
  });

  it('is closed when its handler throws, and the error is reported', async () => {
    const told: string[] = [];
    const server = acceptingServer({
      keepAliveMs: 60_000,
      take: () => {
        throw new Error('raised on purpose');
      },
      report: (_error, where) => void told.push(where),
      where: 'tcp.connection',
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => server.close());
    const peer = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1');
    await new Promise((resolve) =>
      peer
        .on('close', resolve)
        .on('error', () => {})
        .resume(),
    );
    expect(told).toEqual(['tcp.connection']);
  });

  it('emits an error on the server when accept fails', async () => {
    const { server } = await listen();
    const errors: string[] = [];
    server.on('error', (error: NodeJS.ErrnoException) => errors.push(`${error.code} ${error.message}`));
    const { _handle: handle } = server as unknown as { _handle: { onconnection(status: number): void } };
    handle.onconnection(-24);
    expect(errors).toEqual(['EMFILE accept EMFILE']);
  });

  it('stays open when its server closes, and does not delay that close', async () => {
    const { port, accepted, server } = await listen();
    const peer = net.connect({ host: '127.0.0.1', port });
    cleanups.push(() => peer.destroy());
    await eventually(() => expect(accepted).toHaveLength(1));
    await new Promise((resolve) => server.close(resolve));
    const end = adoptAccepted(accepted[0] as AcceptedSocket);
    end.write(Buffer.from('still here'), 0, 10, false);
    await eventually(() => expect(peer.bytesRead === 10 || peer.readableLength === 10).toBe(true));
  });
});

describe('a dial on a handle', () => {
  it('connects to an IPv6 address', async () => {
    const { port, accepted } = await listen('::1');
    const dialled = await connectSocket({ host: '::1', port, timeoutMs: 5000, clock: systemClock });
    await eventually(() => expect(accepted).toHaveLength(1));
    expect(dialled).toBeInstanceOf(HandleDuplex);
    dialled.reset(CUT);
  });

  it('fails with the same message and fields as a Node.js socket', async () => {
    const { port, server } = await listen();
    await new Promise((resolve) => server.close(resolve));
    const failure = (): Promise<object> =>
      connectSocket({ host: '127.0.0.1', port, timeoutMs: 5000, clock: systemClock }).then(
        () => ({}),
        ({ message, code, errno, syscall, address, port: at }) => ({
          message,
          code,
          errno,
          syscall,
          address,
          port: at,
        }),
      );
    const onHandle = await failure();
    allowStaticReads(false);
    expect(onHandle).toEqual(await failure());
    expect(onHandle).toMatchObject({ code: 'ECONNREFUSED', port });
  });

  /** Creates dials on fake handles; a dial completes only when the test answers its connect request. */
  const silent = () => {
    const requests: HandleRequest[] = [];
    let closed = 0;
    class TCP {
      setNoDelay(): number {
        return 0;
      }
      connect(request: HandleRequest): number {
        requests.push(request);
        return 0;
      }
      close(): void {
        closed += 1;
      }
    }
    const node = { ...nodeHandles(), TCP } as unknown as NodeHandles;
    const clock = new FakeClock();
    const address = { family: 4, host: '127.0.0.1', port: 9 } as const;
    const dial = (timeoutMs: number) => dialHandle(address, { timeoutMs, clock }, node);
    return { clock, dial, requests, closed: () => closed };
  };

  it('times out on its own, closes its handle once, and ignores a late result', async () => {
    const { clock, dial, requests, closed } = silent();
    const slow = dial(60_000);
    const failed: string[] = [];
    for (const ms of [30, 10, 20]) {
      dial(ms).catch((error: NodeJS.ErrnoException) => void failed.push(`${error.code} ${error.message}`));
    }
    await clock.advance(9);
    expect(failed).toEqual([]);
    await clock.advance(21);
    expect(failed).toEqual([10, 20, 30].map((ms) => `ETIMEDOUT no answer within ${ms} ms`));
    expect(closed()).toBe(3);
    for (const request of requests) request.oncomplete(0);
    expect(await slow).toBeInstanceOf(HandleDuplex);
    expect(closed()).toBe(3);
  });
});
