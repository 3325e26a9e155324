// A visitor that sends more data and leaves, in every phase of a request. The edge notices, the service is disconnected within a second,
// and no state remains.
import { once } from 'node:events';
import * as net from 'node:net';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import type { RouteDecision } from '../../routing/http-router.ts';
import { type HttpStand, startHttpStand } from './http.fixture.ts';
import { dialTls, startHttpsPort, visitHttp2 } from './https.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Service {
  readonly port: number;
  /** Open connections at the service. */
  readonly open: Set<net.Socket>;
  received: string;
  ended: number;
}

const startService = async (onRequest: (socket: net.Socket) => void): Promise<Service> => {
  const service = { port: 0, open: new Set<net.Socket>(), received: '', ended: 0 };
  const server = net.createServer((socket) => {
    service.open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      service.open.delete(socket);
      service.ended += 1;
    });
    socket.on('data', (chunk: Buffer) => {
      const isFirst = service.received === '';
      service.received += chunk.toString('latin1');
      if (isFirst) onRequest(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    for (const socket of service.open) socket.destroy();
    server.close();
  });
  return Object.assign(service, { port: (server.address() as net.AddressInfo).port });
};

const HOST = 'Host: web.localhost\r\n';
const GET = `GET / HTTP/1.1\r\n${HOST}\r\n`;
const UPGRADE = `GET / HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: echo\r\n\r\n`;

interface Phase {
  readonly name: string;
  readonly request: string;
  readonly service?: (socket: net.Socket) => void;
  /** Whether the edge waits for a routing decision that never comes. */
  readonly isBeingDecided?: boolean;
  /** Whether the client holds the stream without accepting it. */
  readonly isDialling?: boolean;
  /** Text for which the visitor waits before the test continues. */
  readonly until?: string;
}

const PHASES: Phase[] = [
  { name: 'before it is decided where the request goes', request: GET, isBeingDecided: true },
  { name: 'while the service is dialled', request: GET, isDialling: true },
  {
    name: 'while it is dialled, with a body',
    request: `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nwhole`,
    isDialling: true,
  },
  { name: 'while the service is silent', request: GET },
  { name: 'behind a whole body', request: `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nwhole` },
  { name: 'in the middle of a body', request: `POST / HTTP/1.1\r\n${HOST}Content-Length: 9000000\r\n\r\nbegun` },
  {
    name: 'behind an interim answer',
    request: GET,
    service: (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'),
    until: '103',
  },
  {
    name: 'in the middle of an answer',
    request: GET,
    service: (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun'),
    until: 'begun',
  },
  { name: 'behind an upgrade that the service has not answered', request: UPGRADE },
  {
    name: 'behind 101',
    request: UPGRADE,
    service: (socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'),
    until: '101',
  },
];

const BEHIND: [string, string][] = [
  ['nothing', ''],
  ['another request', GET],
  ['half a head', 'GET /half HTTP/1.1\r\nHo'],
  ['more than is kept', 'x'.repeat(300_000)],
];

const start = async ({ service: answer, isBeingDecided, isDialling }: Phase): Promise<[HttpStand, Service]> => {
  const service = await startService((socket) => answer?.(socket));
  const slowRouter = {
    visitorOf: (address: string, scheme: 'http' | 'https') => ({ address, scheme, isProxy: false }),
    route: () => new Promise<RouteDecision>(() => {}),
  };
  const stand = await startHttpStand(service.port, {
    domain: 'localhost',
    ...(isBeingDecided === true ? { router: slowRouter } : {}),
    ...(isDialling === true ? { onStream: () => {} } : {}),
  });
  cleanups.push(() => stand.stop());
  return [stand, service];
};

/** Waits until the phase is reached: the service has the request, or the edge waits for the route or the dial. */
const reached = async (
  { isBeingDecided, isDialling, until }: Phase,
  stand: HttpStand,
  service: Service,
  seen: () => string,
) => {
  await eventually(() => expect(stand.ingress.connections).toBe(1));
  if (isDialling === true) await eventually(() => expect(stand.pair.edge.liveStreams).toBe(1));
  else if (isBeingDecided !== true) await eventually(() => expect(service.received).not.toBe(''));
  if (until !== undefined) await eventually(() => expect(seen()).toContain(until));
};

const nothingIsLeft = async (stand: HttpStand, service: Service): Promise<void> => {
  await eventually(
    () =>
      expect({
        connections: stand.ingress.connections,
        counted: stand.tunnel.counters.openConnections,
        streams: stand.pair.edge.liveStreams,
        service: service.open.size,
        queued: stand.ingress.queuedBytes,
      }).toEqual({ connections: 0, counted: 0, streams: 0, service: 0, queued: 0 }),
    { timeoutMs: 1000 },
  );
};

/** Opens a connection. Returns [the socket to write to, the socket to cut]. */
type Dial = (stand: HttpStand) => Promise<[net.Socket, net.Socket]>;

const dialPlain: Dial = async (stand) => {
  const socket = net.connect({ port: stand.port, host: '127.0.0.1', allowHalfOpen: true });
  await new Promise((resolve) => socket.once('connect', resolve));
  return [socket, socket];
};

const dialSecure: Dial = async (stand) => {
  const port = await startHttpsPort(stand.ingress);
  cleanups.push(() => port.stop());
  const below = net.connect({ port: port.address.port, host: '127.0.0.1' });
  const socket = dialTls({ port }, { socket: below });
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  return [socket, below];
};

describe.each<[string, Dial]>([
  ['plain', dialPlain],
  ['TLS', dialSecure],
])('%s', (_kind, dial) => {
  describe.each(PHASES)('$name', (phase) => {
    it.each(BEHIND.flatMap(([what, bytes]) => (['FIN', 'RST'] as const).map((how) => [what, how, bytes] as const)))(
      'a visitor that then sends %s and leaves by %s is cleaned up within a second',
      async (_what, how, bytes) => {
        const [stand, service] = await start(phase);
        const [socket, below] = await dial(stand);
        let seen = '';
        for (const one of new Set([socket, below])) one.on('error', () => {});
        socket.on('data', (chunk: Buffer) => {
          seen += chunk.toString('latin1');
        });
        cleanups.push(() => below.destroy());
        socket.write(phase.request);
        await reached(phase, stand, service, () => seen);
        await new Promise((resolve) => socket.write(bytes, resolve));
        if (how === 'RST') below.resetAndDestroy();
        else socket.end();
        // After 101, a half-close also reaches the service, and the connection ends when both sides have ended.
        if (phase.until === '101' && how === 'FIN') {
          await eventually(() => expect(service.received).toContain(bytes));
          for (const one of service.open) one.end();
        }
        await nothingIsLeft(stand, service);
      },
    );
  });
});

it('a reset by the visitor is noticed even while its service does not read the body', async () => {
  const [stand] = await start({ name: '', request: '', service: (socket) => socket.pause() });
  const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
  socket.on('error', () => {});
  socket.write(`POST / HTTP/1.1\r\n${HOST}Content-Length: 100000000\r\n\r\n`);
  socket.write(Buffer.alloc(100_000_000));
  let before = -1;
  await eventually(
    () => {
      const seen = before;
      before = stand.tunnel.counters.bytes;
      expect([seen > 1_000_000, seen]).toEqual([true, before]);
    },
    { intervalMs: 200 },
  );
  socket.resetAndDestroy();
  await once(socket, 'close');
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  await stand.clock.advance(2 * EDGE_LIMITS.SESSION_TICK_MS);
  expect([stand.ingress.connections, stand.pair.edge.liveStreams]).toEqual([0, 0]);
});

describe('HTTP/2', () => {
  it.each(PHASES.filter(({ request }) => request === GET).map((phase) => [phase.name, phase] as const))(
    '%s: a visitor that leaves is cleaned up within a second, at the service too',
    async (_name, phase) => {
      for (const how of ['close', 'destroy', 'reset'] as const) {
        const [stand, service] = await start(phase);
        const port = await startHttpsPort(stand.ingress);
        cleanups.push(() => port.stop());
        const session = visitHttp2({ port });
        cleanups.push(() => session.destroy());
        const stream = session.request({ ':path': '/' });
        let seen = '';
        stream.on('error', () => {});
        stream.on('headers', (head) => (seen += String(head[':status'])));
        stream.on('data', (chunk: Buffer) => (seen += chunk.toString('latin1')));
        await reached(phase, stand, service, () => seen);
        if (how === 'reset') stream.close(8);
        else session.destroy();
        if (how === 'reset') {
          await eventually(() => expect([stand.pair.edge.liveStreams, service.open.size]).toEqual([0, 0]), {
            timeoutMs: 1000,
          });
          session.destroy();
        }
        await nothingIsLeft(stand, service);
      }
    },
  );
});
