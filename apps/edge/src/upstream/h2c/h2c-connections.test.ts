// Services that break the rules of HTTP/2. Their visitors get an error, and the next request gets a working connection.

import * as net from 'node:net';
import { eventually, FakeClock, sessionPair } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import {
  dialLocal,
  type HttpStand,
  newHttpTunnel,
  startHttpStand,
  startIngress,
  talk,
} from '../../ingress/http/http.fixture.ts';
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  PRIORITY,
  refusesSelfDependency,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../ingress/http/http2/http2-frames.fixture.ts';
import { startRecordingH2c } from '../../ingress/http/service.fixture.ts';
import { MuxUpstream } from '../upstream.ts';
import { H2C_LINGER_MS, H2C_SESSION_IDLE_MS } from './h2c-connections.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const PREFACE_BYTES = 24;

/** Creates a response with `:status: 200` and the body `ok`. */
const answerTo = (id: number): Buffer =>
  Buffer.concat([frame(HEADERS, END_HEADERS, id, [0x88]), frame(DATA, END_STREAM, id, Buffer.from('ok'))]);

/** Starts a service that answers requests with the bytes of `answer` and never hangs up. Connections are numbered from 1. */
const startRawH2c = async (
  answer: (id: number, connection: number, socket: net.Socket) => Buffer,
  hello = frame(SETTINGS, 0, 0),
): Promise<HttpStand> => {
  let connections = 0;
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    connections += 1;
    const connection = connections;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.write(hello);
    let rest = Buffer.alloc(0);
    let skip = PREFACE_BYTES;
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      if (rest.length < skip) return;
      rest = rest.subarray(skip);
      skip = 0;
      while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        if (rest[3] === HEADERS) socket.write(answer(rest.readUInt32BE(5), connection, socket));
        rest = rest.subarray(9 + rest.readUIntBE(0, 3));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  // Without a time limit, no request ends because of a timeout.
  const options = { firstByteTimeoutMs: Number.POSITIVE_INFINITY, http: { localProtocol: 'h2c' } } as const;
  const stand = await startHttpStand(port, options);
  cleanups.push(
    () => server.close(),
    () => sockets.forEach((socket) => socket.destroy()),
    () => stand.stop(),
  );
  return stand;
};

const GET = 'GET / HTTP/1.1\r\nHost: web.edge.test\r\nAccept: application/json\r\nConnection: close\r\n\r\n';

const BROKEN: [string, (id: number) => Buffer][] = [
  ['data for the connection itself', () => frame(DATA, 0, 0, [1])],
  ['headers that cannot be unpacked', (id) => frame(HEADERS, END_HEADERS, id, [0xff, 0xff, 0xff, 0xff])],
  ['a stream that nobody opened', (id) => frame(HEADERS, END_HEADERS, id + 100, [0x88])],
];
if (await refusesSelfDependency()) {
  BROKEN.push(['a stream that depends on itself', (id) => frame(PRIORITY, 0, id, [0, 0, 0, id, 1])]);
}

it.each(BROKEN)(
  '%s ends only that connection: its visitor gets 502 and the next request is served',
  async (_what, broken) => {
    const stand = await startRawH2c((id, connection) => (connection === 1 ? broken(id) : answerTo(id)));
    let first = '';
    void talk(stand.port, GET).then((answer) => {
      first = answer;
    });
    await eventually(async () => {
      await stand.clock.advance(1000);
      expect(first).toMatch(/^HTTP\/1\.1 502 /);
    });
    expect(await talk(stand.port, GET)).toMatch(/ok\r\n0\r\n\r\n$/);
    expect(stand.dials).toBe(2);
  },
);

it('an idle connection is closed even if the service never hangs up', async () => {
  const stand = await startRawH2c((id) => answerTo(id));
  expect(await talk(stand.port, GET)).toMatch(/ok\r\n0\r\n\r\n$/);
  expect(stand.pair.edge.liveStreams).toBe(1);
  await stand.clock.advance(H2C_SESSION_IDLE_MS);
  expect(stand.pair.edge.liveStreams).toBe(1);
  await eventually(async () => {
    await stand.clock.advance(H2C_LINGER_MS);
    expect(stand.pair.edge.liveStreams).toBe(0);
  });
});

/** The largest windows of a service, so that only the service's reading limits an upload. */
const BOUNDLESS = Buffer.concat([
  frame(SETTINGS, 0, 0, [0, 4, 0x7f, 0xff, 0xff, 0xff]),
  frame(WINDOW_UPDATE, 0, 0, [0x7f, 0, 0, 0]),
]);

it('a connection to a service that stops reading is closed after the visitor has left', async () => {
  const stand = await startRawH2c((_id, _connection, socket) => {
    socket.pause();
    return Buffer.alloc(0);
  }, BOUNDLESS);
  const visitor = net.connect(stand.port, '127.0.0.1');
  cleanups.push(() => visitor.destroy());
  visitor.write('POST / HTTP/1.1\r\nHost: web.edge.test\r\nContent-Length: 100000000\r\n\r\n');
  let written = 0;
  const upload = setInterval(() => {
    if (visitor.writableLength === 0) visitor.write(Buffer.alloc(1 << 20), () => (written += 1));
  }, 1);
  cleanups.push(() => clearInterval(upload));
  // Waits until no byte moves, whatever the kernels on the way buffer.
  let before = -1;
  await eventually(
    () => {
      const now = stand.tunnel.counters.bytes;
      const stands = now > 0 && now === before && visitor.writableLength > 0;
      before = now;
      expect([stands, written > 0]).toEqual([true, true]);
    },
    { intervalMs: 200, timeoutMs: 20_000 },
  );
  visitor.resetAndDestroy();
  await eventually(async () => {
    await stand.clock.advance(H2C_LINGER_MS);
    expect([stand.ingress.connections, stand.pair.edge.liveStreams]).toEqual([0, 0]);
  });
});

it('a request after the client went away gets 502, and the next request uses the new session', async () => {
  const service = await startRecordingH2c('svc');
  // The network of the first client is gone, so that it neither accepts nor refuses a stream.
  const before = await sessionPair({ kind: 'plain', carriers: 1, client: { onStream: () => {} } });
  const after = await sessionPair({
    kind: 'plain',
    carriers: 1,
    client: { onStream: (stream) => dialLocal(stream, service.port) },
  });
  const upstream = new MuxUpstream(before.edge);
  const tunnel = newHttpTunnel(before.edge, { http: { localProtocol: 'h2c' }, upstream });
  const { port, stop } = await startIngress(tunnel, { clock: new FakeClock() });
  cleanups.push(
    () => service.close(),
    () => before.close(),
    () => after.close(),
    () => stop(),
  );
  void talk(port, GET).catch(() => {});
  await eventually(() => expect(before.edge.liveStreams).toBe(1));
  before.edge.drain('control connection lost');
  upstream.mux = null;
  expect(await talk(port, GET)).toMatch(/^HTTP\/1\.1 502 [^]*TUNNEL_AWAY/);
  upstream.mux = after.edge;
  expect(await talk(port, GET)).toMatch(/svc\r\n0\r\n\r\n$/);
});
