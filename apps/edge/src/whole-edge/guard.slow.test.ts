// Places where Node.js calls the edge for a connection, with a fault raised below the call, while 200 other connections are in the middle
// of an exchange.
import type * as http2 from 'node:http2';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hello, protocols } from '../../../../packages/http-shell/src/tls/hello.fixture.ts';
import { RawClient } from '../control/raw-client.fixture.ts';
import { talk } from '../ingress/http/http.fixture.ts';
import { GuardStage } from './guard-stage.fixture.ts';
import { allowFaults, hasThrown, throwAt } from './throw-at.fixture.ts';

let stage: GuardStage;
let forbidFaults: () => void;

beforeAll(async () => {
  forbidFaults = allowFaults();
  stage = await GuardStage.start();
  await stage.crowd();
  // The periodic ticks must have seen all connections of the crowd.
  await new Promise((resolve) => setTimeout(resolve, 1200));
}, 60_000);

afterAll(async () => {
  forbidFaults();
  await stage.disperse();
  expect(await stage.metric('tunnel_active_connections')).toBe(0);
  await stage.stop();
});

// ---- what a visitor does, and what comes of it ----

const INTERNAL = /^HTTP\/1\.1 500 .*x-tunnel-error: INTERNAL/is;
const RESET = /^reset/;
/**
 * A service's response that was cut off. Node.js can report a reset right behind the last bytes as an end; then the missing last chunk
 * shows that the response was cut off.
 */
const CUT = /^(?:reset|HTTP\/1\.1 200 (?![\s\S]*\r\n0\r\n\r\n$))/;
/** Any outcome: the fault comes after the last byte of a response, or the visitor has already left. */
const ANY = /^/;

const headOf = (name: string, path: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${name}.localhost\r\n${more}\r\n`;

const ask =
  (name: string, path: string, more = 'Connection: close\r\n') =>
  () =>
    talk(stage.httpPort, headOf(name, path, more)).catch((error: unknown) => `reset ${String(error)}`);

const post = (name: string, path: string, bytes: number) => () =>
  talk(
    stage.httpPort,
    `POST ${path} HTTP/1.1\r\nHost: ${name}.localhost\r\nContent-Length: ${bytes}\r\nConnection: close\r\n\r\n${'x'.repeat(bytes)}`,
  ).catch((error: unknown) => `reset ${String(error)}`);

/** Sends a request, reads nothing until bytes wait at the edge, and then reads to the end. */
const askSlowly = (name: string) => async (): Promise<string> => {
  const socket = net.connect(stage.httpPort, '127.0.0.1').pause();
  socket.on('error', () => {});
  socket.write(headOf(name, '/big'));
  await eventually(async () => expect(await stage.metric('tunnel_queued_bytes')).toBeGreaterThan(0));
  socket.resume();
  await new Promise((resolve) => socket.once('close', resolve));
  return 'reset';
};

const leave = (text: string, how: 'end' | 'resetAndDestroy') => async (): Promise<string> => {
  const socket = net.connect(stage.httpPort, '127.0.0.1');
  socket.on('error', () => {});
  await new Promise<void>((resolve) => socket.write(text, () => resolve()));
  await eventually(async () => expect(await stage.metric('tunnel_active_connections')).toBeGreaterThan(before));
  socket[how]();
  socket.resume();
  await new Promise((resolve) => socket.once('close', resolve));
  return 'left';
};

const wait = (alpn: 'plain' | 'h2') => async (): Promise<string> => {
  if (alpn === 'plain') {
    const socket = net.connect(stage.httpPort, '127.0.0.1');
    socket.on('error', () => {}).resume();
    await new Promise((resolve) => socket.once('close', resolve));
    return 'reset';
  }
  return askHttp2('/hold')();
};

type Act = (stream: http2.ClientHttp2Stream, session: http2.ClientHttp2Session) => void;

/** Sends an HTTP/2 request, and returns the outcome of the stream or session. */
const askHttp2 =
  (path: string, act: Act = (stream) => stream.resume(), headers: http2.OutgoingHttpHeaders = {}) =>
  async (): Promise<string> => {
    const session = stage.visitHttp2();
    const isPost = headers[':method'] === 'POST';
    const stream = session.request({ ':path': path, ...headers }, { endStream: !isPost, waitForTrailers: isPost });
    stream.on('wantTrailers', () => stream.listenerCount('wantTrailers') === 1 && stream.sendTrailers({}));
    let status = 0;
    let hint = '';
    stream.on('error', () => {});
    stream.on('response', (head) => {
      status = head[':status'] ?? 0;
      hint = String(head['x-tunnel-error']);
    });
    act(stream, session);
    await new Promise((resolve) => stream.once('close', resolve));
    session.close();
    return status === 500 && stream.rstCode === 0 ? `HTTP/1.1 500 x-tunnel-error: ${hint}` : `reset ${stream.rstCode}`;
  };

const postHttp2 = (path: string, act: Act) => askHttp2(path, act, { ':method': 'POST' });

const sendTrailers: Act = (stream) => {
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-check': '1' }));
  stream.resume().end('x');
};

const sayGarbage = async (): Promise<string> => {
  const socket = stage.dialTls('h2');
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(Buffer.alloc(64, 0xff));
  socket.resume();
  await new Promise((resolve) => socket.once('close', resolve));
  return 'reset';
};

const dialHttps1 = async (): Promise<string> => {
  const socket = stage.dialTls('http/1.1').resume();
  await new Promise((resolve) => socket.once('close', resolve));
  return 'reset';
};

const connectTo = (port: () => number, text: string | Uint8Array) => async (): Promise<string> => {
  const socket = net.connect(port(), '127.0.0.1');
  socket.on('error', () => {});
  socket.write(text);
  socket.resume();
  await new Promise((resolve) => socket.once('close', resolve));
  return 'reset';
};

const askControlPort =
  (expectation = '') =>
  async (): Promise<string> => {
    const socket = tls.connect({ host: '127.0.0.1', port: stage.controlPort, rejectUnauthorized: false });
    socket.on('error', () => {}).resume();
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\n${expectation}\r\n`);
    await new Promise((resolve) => socket.once('close', resolve));
    return 'reset';
  };

const control = (act: (client: RawClient) => void) => async (): Promise<string> => {
  const client = new RawClient(stage.controlPort, { scheme: 'wss' });
  client.ws.once('open', () => {
    client.auth('admin');
    act(client);
  });
  const { code } = await client.closed;
  return `reset ${code}`;
};

// ---- the places ----

const UPGRADE = 'Connection: Upgrade\r\nUpgrade: echo\r\n';

const GUARDED_CALLS: readonly (readonly [where: string, act: () => Promise<string>, outcome: RegExp])[] = [
  ['socket.data', ask('web', '/'), INTERNAL],
  ['socket.end', leave('', 'end'), ANY],
  ['socket.drain', askSlowly('web'), RESET],
  ['socket.flushed', ask('web', '/'), ANY],
  ['socket.reset', leave('GET / HT', 'resetAndDestroy'), ANY],
  ['stream.opened', ask('web', '/', UPGRADE), INTERNAL],
  ['stream.refused', ask('dead', '/'), INTERNAL],
  ['stream.data', ask('web', '/'), INTERNAL],
  ['stream.end', ask('web', '/until-close'), CUT],
  ['stream.reset', ask('web', '/cut'), CUT],
  ['stream.drain', post('web', '/slow', 8_000_000), INTERNAL],
  ['visitor.tick', wait('plain'), RESET],
  ['http2.tick', wait('h2'), RESET],
  ['http2.request', askHttp2('/'), INTERNAL],
  ['http2.session.stream', askHttp2('/'), RESET],
  [
    'http2.session.ping',
    askHttp2('/hold', (stream, session) => stream.once('data', () => session.ping(() => {}))),
    RESET,
  ],
  ['http2.session.remoteSettings', askHttp2('/hold'), RESET],
  ['http2.session.error', sayGarbage, ANY],
  [
    'http2.session.close',
    askHttp2('/', (stream, session) => stream.resume().once('end', () => session.destroy())),
    ANY,
  ],
  ['http2.stream.data', postHttp2('/', (stream) => stream.resume().end('x')), INTERNAL],
  ['http2.stream.end', postHttp2('/', (stream) => stream.resume().end('x')), INTERNAL],
  ['http2.stream.trailers', postHttp2('/', sendTrailers), INTERNAL],
  [
    'http2.stream.finish',
    askHttp2('/', (stream) => stream.resume(), { ':method': 'POST', ':authority': 'no.localhost' }),
    ANY,
  ],
  ['http2.stream.wantTrailers', askHttp2('/'), RESET],
  ['http2.stream.drain', askHttp2('/big', (stream) => setTimeout(() => stream.resume(), 200)), RESET],
  ['http2.stream.aborted', askHttp2('/hold', (stream) => stream.once('data', () => stream.close(8))), ANY],
  ['http2.stream.error', askHttp2('/hold', (stream) => stream.once('data', () => stream.close(2))), ANY],
  ['http2.stream.close', askHttp2('/'), ANY],
  ['h2c.stream.headers', ask('calls', '/early'), INTERNAL],
  ['h2c.stream.response', ask('calls', '/'), INTERNAL],
  ['h2c.stream.data', ask('calls', '/'), CUT],
  ['h2c.stream.end', ask('calls', '/'), CUT],
  ['h2c.stream.trailers', ask('calls', '/trailers'), CUT],
  ['h2c.stream.drain', post('calls', '/slow', 8_000_000), INTERNAL],
  ['h2c.stream.wantTrailers', post('calls', '/', 10), ANY],
  ['h2c.stream.finish', post('calls', '/', 10), ANY],
  ['h2c.stream.error', ask('calls', '/error'), INTERNAL],
  ['h2c.stream.close', ask('calls', '/error'), INTERNAL],
  // Must be the first request to this service, because the tick must find a new connection. On a busy machine, the tick comes before the
  // response has begun.
  ['h2c.tick', ask('victim', '/hold'), new RegExp(`${CUT.source}|^HTTP/1\\.1 502 `)],
  ['h2c.call.close', ask('victim', '/'), ANY],
  ['h2c.connected', ask('victim', '/'), INTERNAL],
  ['h2c.session.goaway', ask('victim', '/goaway'), ANY],
  ['h2c.session.remoteSettings', ask('victim', '/'), /^HTTP\/1\.1 50\d/],
  ['h2c.session.error', ask('victim', '/break'), ANY],
  ['h2c.session.close', ask('victim', '/end'), ANY],
  ['h2c.write', ask('victim', '/'), /^HTTP\/1\.1 50\d/],
  ['h2c.refused', ask('dead-calls', '/'), INTERNAL],
  ['http.connection', ask('web', '/'), /^(?:reset|$)/],
  ['https.connection', async () => connectTo(() => stage.edge.addresses.https?.port ?? 0, '')(), RESET],
  ['https.handshake', askHttp2('/'), RESET],
  ['https.secure', dialHttps1, RESET],
  ['https.secureConnection', askHttp2('/'), RESET],
  // A ClientHello for node:tls without a common key agreement.
  ['https.tlsClientError', connectTo(() => stage.edge.addresses.https?.port ?? 0, hello(protocols('h2'))), RESET],
  ['visitor.leave', connectTo(() => stage.httpPort, 'GET /_control HTTP/1.1\r\nHost: localhost\r\n\r\n'), RESET],
  ['tcp.connection', connectTo(() => stage.tcpPort, 'x'), RESET],
  ['control-port.connection', control(() => {}), RESET],
  ['control-port.request', askControlPort(), RESET],
  ['control-port.checkExpectation', askControlPort('Expect: more\r\n'), RESET],
  ['control-port.upgrade', control(() => {}), RESET],
  ['control-port.clientError', connectTo(() => stage.controlPort, 'x\r\n\r\n'), RESET],
  ['control.message', control(() => {}), /^reset/],
  ['control.ping', control(({ ws }) => ws.ping()), RESET],
  ['control.pong', control(({ ws }) => ws.pong()), RESET],
  ['control.error', control(({ ws }) => ws.send('x'.repeat(2_000_000))), RESET],
  ['control.close', control(({ ws }) => ws.close()), ANY],
];

let before = 0;

const soon = (check: () => unknown): Promise<unknown> => eventually(check as () => void, { timeoutMs: 5000 });

describe('a fault at', () => {
  it.each(GUARDED_CALLS)('%s costs one connection and no other', async (where, act, outcome) => {
    before = await stage.metric('tunnel_active_connections');
    const name = `tunnel_internal_errors_total{where="${where}"}`;
    const sessionsBefore = await stage.metric('tunnel_active_sessions');
    stage.logger.errors.length = 0;
    throwAt(where);
    expect(await act()).toMatch(outcome);
    await soon(() => expect(hasThrown()).toBe(true));
    await soon(async () => expect(await stage.metric(name)).toBe(1));
    expect(stage.logger.errors.map((line) => line.where)).toEqual([where]);
    expect(stage.logger.errors[0]?.err).toBeInstanceOf(Error);
    await soon(async () => expect(await stage.metric('tunnel_active_connections')).toBe(before));
    await soon(async () => expect(await stage.metric('tunnel_active_sessions')).toBe(sessionsBefore));
    await stage.echoes();
    expect(stage.gone).toEqual([]);
  });
});
