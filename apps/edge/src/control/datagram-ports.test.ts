import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { PortLeases } from '@tunnel/rules/names';
import { type LeasedEndpoint } from '@tunnel/rules/tunnels';
import { rethrow } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { DatagramPorts, type DatagramPortsConfig } from './datagram-ports.ts';

const HOST = '127.0.0.1';
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** Binds a udp port, as another program would. */
const take = async (port = 0): Promise<Socket> => {
  const socket = createSocket('udp4');
  socket.bind(port, HOST);
  await once(socket, 'listening');
  open.push(() => socket.close());
  return socket;
};

const isFree = async (port: number): Promise<boolean> => {
  const socket = createSocket('udp4');
  try {
    socket.bind(port, HOST);
    await once(socket, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
};

/** Finds a range of consecutive free udp ports. */
const freeRange = async (size: number): Promise<[number, number]> => {
  for (;;) {
    const from = 24_000 + Math.floor(Math.random() * 4000);
    const ports = Array.from({ length: size }, (_, n) => from + n);
    const free = await Promise.all(ports.map(isFree));
    if (free.every(Boolean)) return [from, from + size - 1];
  }
};

const setUp = (given: {
  readonly range: [number, number];
  readonly ports?: readonly number[];
  readonly path?: 'auto' | 'carrier';
  readonly direct?: boolean;
  readonly udp?: boolean;
  readonly p2p?: boolean;
}) => {
  const [from, to] = given.range;
  const leases = new PortLeases({ from, to }, () => 0);
  const portOf = (at: LeasedEndpoint): number => (at.kind === 'port' ? at.port : 0);
  const endpoints = {
    reserve: (at: LeasedEndpoint, owner: string, until: number): boolean => {
      const port = portOf(at);
      return leases.lease(owner, { kind: 'exact', port }, 0).kind === 'leased' && leases.hold(port, owner, until);
    },
    release: (at: LeasedEndpoint, owner: string): void => void leases.release(portOf(at), owner),
  };
  const lines: string[] = [];
  const logger = { info: () => {}, warn: (_fields: object, text: string) => lines.push(text) };
  const { path = 'auto', direct = true } = given;
  const config: DatagramPortsConfig = {
    server: { host: HOST },
    udp: { enabled: given.udp ?? true, path, ports: [...(given.ports ?? [])] as DatagramPortsConfig['udp']['ports'] },
    p2p: { enabled: given.p2p ?? true, direct },
    limits: { udp_port_range: given.range },
  };
  const ports = new DatagramPorts(config, { endpoints, logger, report: rethrow });
  open.push(() => ports.stop());
  return { ports, leases, lines };
};

it('the edge takes the two highest free ports of the range for datagrams and never gives them to tunnels', async () => {
  const range = await freeRange(4);
  await take(range[1]);
  const { ports, leases } = setUp({ range });
  await ports.start();
  expect(ports.numbers).toEqual([range[1] - 1, range[1] - 2]);
  for (const port of ports.numbers) {
    expect(leases.lease('tun_1', { kind: 'exact', port }, 1e12)).toEqual({ kind: 'in-use', port });
  }
  // A port in use by another program can be leased later, after the program has ended.
  expect(leases.freeCount(1e12)).toBe(2);
  await ports.stop();
  expect(await isFree(range[1] - 1)).toBe(true);
});

it('a port held for a client of the last run is not taken for datagrams', async () => {
  const range = await freeRange(4);
  const { ports, leases } = setUp({ range });
  leases.lease('tun_1', { kind: 'exact', port: range[1] }, 0);
  await ports.start();
  expect(ports.numbers).toEqual([range[1] - 1, range[1] - 2]);
});

it('configured datagram ports are taken, inside or outside the range, and 0 means any free port', async () => {
  const range = await freeRange(4);
  const { ports, leases } = setUp({ range, ports: [range[0], 0] });
  await ports.start();
  expect(ports.numbers[0]).toBe(range[0]);
  expect(ports.numbers[1]).toBeGreaterThan(0);
  expect(leases.lease('tun_1', { kind: 'exact', port: range[0] }, 0)).toMatchObject({ kind: 'in-use' });
});

it('a configured datagram port in use fails the start with its number, and every port is released', async () => {
  const taken = (await take()).address().port;
  const [free] = await freeRange(1);
  const { ports } = setUp({ range: [20_000, 20_010], ports: [free, taken] });
  await expect(ports.start()).rejects.toMatchObject({
    code: 'CONFIG_PORT_TAKEN',
    message: `port ${taken} on ${HOST} is already in use ([udp] ports)`,
  });
  expect(ports.numbers).toEqual([]);
  expect(await isFree(free)).toBe(true);
});

it.each([
  ['fewer than three ports', 2, 0],
  ['no two free ones', 3, 2],
])('a range with %s logs a warning and leaves the edge without datagram ports', async (_, size, taken) => {
  const range = await freeRange(size);
  for (let i = 0; i < taken; i += 1) await take(range[0] + i);
  const { ports, lines, leases } = setUp({ range });
  await ports.start();
  expect(ports.numbers).toEqual([]);
  expect(lines.join('')).toContain('udp_port_range');
  expect(leases.freeCount(0)).toBe(size);
});

it.each([
  [{ path: 'auto', direct: false }, 2],
  [{ path: 'carrier', direct: true }, 2],
  [{ path: 'carrier', direct: false }, 0],
  [{ path: 'auto', udp: false, direct: false }, 0],
  [{ path: 'carrier', direct: true, p2p: false }, 0],
] as const)('with %j the edge opens %i datagram ports', async (given, count) => {
  const { ports } = setUp({ range: [20_000, 20_010], ports: [0, 0], ...given });
  await ports.start();
  expect(ports.numbers.length).toBe(count);
});
