import { connect, Socket } from 'node:net';
import { type AcceptedSocket, allowStaticReads } from '@tunnel/mux';
import { eventually, freePort, rethrow, startTcpServer } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import type { Tunnel } from '../../routing/tunnel.ts';
import { openGate } from '../gate.fixture.ts';
import { RelayTotals } from './relay-totals.ts';
import { TcpListeners } from './tcp-listeners.ts';

const tunnel = { tunnelId: 'tun_1' } as Tunnel;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

const start = (host = '127.0.0.1', gate = openGate()) => {
  const carried: AcceptedSocket[] = [];
  const turnedAway: number[] = [];
  const known = new Set<number>();
  const drained = { count: 0 };
  const relay = {
    carry: (socket: AcceptedSocket) => void carried.push(socket),
    turnAway: (socket: AcceptedSocket, port: number) => {
      turnedAway.push(port);
      socket.resetAndDestroy();
    },
    get connections() {
      return carried.length;
    },
    totals: new RelayTotals(),
    drain: () => void (drained.count += 1),
    resetAll: () => {
      for (const socket of carried.splice(0)) socket.resetAndDestroy();
    },
    whenIdle: async () => {},
    report: rethrow,
  };
  const routeOn = (port: number) => (known.has(port) ? tunnel : undefined);
  const listeners = new TcpListeners({ host, routeOn, relay, gate });
  cleanups.push(async () => {
    await listeners.closeAll();
    relay.resetAll();
  });
  return { listeners, carried, turnedAway, known, drained };
};

const visit = (port: number): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    cleanups.push(() => socket.destroy());
    socket.once('connect', () => resolve('connected'));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
  });

it.each([true, false])(
  'a visitor of a known port is handed over unread (socket handles of the edge: %s)',
  async (isOwn) => {
    allowStaticReads(isOwn);
    cleanups.push(() => allowStaticReads(true));
    const { listeners, carried, known } = start();
    const port = await freePort();
    known.add(port);
    expect(await listeners.listen(port, 'alice')).toBe('listening');
    expect(await visit(port)).toBe('connected');
    await eventually(() => expect(carried).toHaveLength(1));
    const [visitor] = carried;
    expect(visitor?.bytesRead).toBe(0);
    expect(visitor instanceof Socket).toBe(!isOwn);
    if (visitor instanceof Socket) expect([visitor.allowHalfOpen, visitor.isPaused()]).toEqual([true, true]);
  },
);

it('a port that is already in use, by another program or by the edge, is reported as taken', async () => {
  const { listeners } = start();
  const other = await startTcpServer(() => {});
  cleanups.push(() => other.close());
  expect(await listeners.listen(other.port, 'alice')).toBe('taken');
  const port = await freePort();
  expect(await Promise.all([listeners.listen(port, 'alice'), listeners.listen(port, 'alice')])).toEqual([
    'listening',
    'taken',
  ]);
});

it('an address that does not belong to the machine is a fault that names the port range', async () => {
  const { listeners } = start('192.0.2.1');
  await expect(listeners.listen(20_000, 'alice')).rejects.toMatchObject({
    code: 'CONFIG_PORT_DENIED',
    values: { key: '[limits] tcp_port_range', reason: 'EADDRNOTAVAIL' },
  });
});

it('closing a port refuses new visitors, keeps connections and frees the port at once', async () => {
  const { listeners, carried, known } = start();
  const port = await freePort();
  known.add(port);
  await listeners.listen(port, 'alice');
  await visit(port);
  await eventually(() => expect(carried).toHaveLength(1));
  await listeners.close(port);
  expect(await visit(port)).toBe('ECONNREFUSED');
  expect(carried[0]?.destroyed).toBe(false);
  expect(listeners.connections).toBe(1);
  expect(await listeners.listen(port, 'alice')).toBe('listening');
});

it('a port that is closed while it opens does not stay open', async () => {
  const { listeners } = start();
  const port = await freePort();
  const opening = listeners.listen(port, 'alice');
  await listeners.close(port);
  expect(await opening).toBe('taken');
  expect(await visit(port)).toBe('ECONNREFUSED');
});

it('a visitor of a port without a tunnel is rejected', async () => {
  const { listeners, turnedAway } = start();
  const port = await freePort();
  await listeners.listen(port, 'alice');
  await visit(port);
  await eventually(() => expect(turnedAway).toEqual([port]));
});

it('closing all ports starts the drain of the connections', async () => {
  const { listeners, drained } = start();
  const port = await freePort();
  await listeners.listen(port, 'alice');
  await listeners.close(port);
  expect(drained.count).toBe(0);
  await listeners.closeAll();
  expect(drained.count).toBe(1);
});

it('a port counts for its account until it is closed, even if visitors remain; a failed opening does not count', async () => {
  const gate = openGate({ visitors: 400 });
  const { listeners, carried, known } = start('127.0.0.1', gate);
  const other = await startTcpServer(() => {});
  cleanups.push(() => other.close());
  const port = await freePort();
  known.add(port);
  for (let n = 0; n < gate.admission.portsPerAccount - 1; n += 1) gate.openPort('alice');
  expect(await listeners.listen(other.port, 'alice')).toBe('taken');
  expect(await listeners.listen(port, 'alice')).toBe('listening');
  await visit(port);
  await eventually(() => expect(carried).toHaveLength(1));
  await expect(listeners.listen(await freePort(), 'alice')).rejects.toMatchObject({
    code: 'TUNNEL_PORT_LIMIT',
    message: 'cannot open another port: port limit of 128 reached for this account',
  });
  await listeners.close(port);
  expect(await listeners.listen(port, 'alice')).toBe('listening');
});
