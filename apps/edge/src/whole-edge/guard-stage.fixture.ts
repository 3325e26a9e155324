// A whole edge with a client and services of every kind behind it. Many visitors of different kinds must not notice a fault. Used by
// tests only.

import { writeFileSync } from 'node:fs';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as net from 'node:net';
import { join } from 'node:path';
import * as tls from 'node:tls';
import { loadServerConfig } from '@tunnel/config/server';
import { createCarrier, MuxSession, processBudget } from '@tunnel/mux';
import { type Logger, Secret, systemClock } from '@tunnel/runtime';
import { eventually, rethrow, type TemporaryDirectory, temporaryDirectory, testCertificate } from '@tunnel/testkit';
import { askUpgrade } from '../control/raw-carrier.fixture.ts';
import { RawClient } from '../control/raw-client.fixture.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';
import { dialLocal } from '../ingress/http/http.fixture.ts';

export const BIG_BYTES = 24 * 1024 * 1024;
const TLS = { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.3' } as const;

interface Line {
  readonly where?: string;
  readonly err?: unknown;
}

/** A logger that keeps the lines of level error. */
class KeepingLogger implements Logger {
  readonly errors: Line[] = [];
  readonly droppedLines = 0;
  debug(): void {}
  info(): void {}
  warn(): void {}
  error(fields: object): void {
    this.errors.push(fields);
  }
  child(): Logger {
    return this;
  }
  async flush(): Promise<void> {}
}

/** Starts a server on loopback, for HTTP/1.1, h2c or TCP. Returns its port. */
const listening = async (server: net.Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as net.AddressInfo).port;
};

const answerHttp1 = (request: http.IncomingMessage, response: http.ServerResponse): void => {
  request.on('error', () => {});
  switch (request.url) {
    case '/hold':
      response.write('begun');
      return;
    case '/big':
      response.end(Buffer.alloc(BIG_BYTES));
      return;
    case '/until-close':
      response.socket?.end('HTTP/1.1 200 OK\r\n\r\npart');
      return;
    case '/cut':
      response.socket?.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart', () =>
        response.socket?.resetAndDestroy(),
      );
      return;
    case '/slow':
      setTimeout(() => request.resume().on('end', () => response.end('taken')), 300);
      return;
    default:
      request.resume().on('end', () => response.end('hello'));
  }
};

const answerH2c = (stream: http2.ServerHttp2Stream, path: string): void => {
  stream.on('error', () => {});
  switch (path) {
    case '/hold':
      stream.respond({ ':status': 200 });
      stream.write('begun');
      return;
    case '/big':
      stream.respond({ ':status': 200 });
      stream.end(Buffer.alloc(BIG_BYTES));
      return;
    case '/early':
      stream.additionalHeaders({ ':status': 103 });
      stream.respond({ ':status': 200 });
      stream.end('hello');
      return;
    case '/trailers':
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-check': '1' }));
      stream.end('hello');
      return;
    case '/error':
      stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      return;
    case '/goaway':
      stream.session?.goaway();
      stream.respond({ ':status': 200 });
      stream.end('hello');
      return;
    case '/end':
      stream.session?.destroy();
      return;
    case '/break':
      stream.session?.destroy(new Error('broken'), http2.constants.NGHTTP2_INTERNAL_ERROR);
      return;
    case '/slow':
      setTimeout(() => stream.resume(), 300);
      stream.on('end', () => {
        // The injected fault may have destroyed the stream.
        if (stream.destroyed) return;
        stream.respond({ ':status': 200 });
        stream.end('taken');
      });
      return;
    default:
      stream.resume();
      stream.respond({ ':status': 200 });
      stream.end('hello');
  }
};

export class GuardStage {
  readonly logger = new KeepingLogger();
  readonly edge: Edge;
  tcpPort = 0;
  #directory!: TemporaryDirectory;
  readonly #ends: (() => unknown)[] = [];
  /** Kinds of closed bystander connections. The list must stay empty. */
  readonly gone: string[] = [];
  readonly #bystanders: net.Socket[] = [];
  readonly #sessions: http2.ClientHttp2Session[] = [];

  private constructor(directory: TemporaryDirectory) {
    this.#directory = directory;
    const { cert, key } = testCertificate();
    const cert_path = join(directory.path, 'cert.pem');
    const key_path = join(directory.path, 'key.pem');
    writeFileSync(cert_path, cert);
    writeFileSync(key_path, key);
    const config = loadServerConfig({
      env: {},
      overrides: {
        server: {
          control_port: 0,
          api_port: 0,
          metrics_port: 0,
          http_port: 0,
          https_port: 0,
          domain: 'localhost',
          plain_http: 'proxy',
        },
        limits: { tcp_port_range: [31_100, 31_999] },
        tls: { cert_path, key_path },
      },
    });
    this.edge = createEdge(config, { clock: systemClock, logger: this.logger, adminToken: new Secret('admin') });
  }

  static async start(): Promise<GuardStage> {
    const stage = new GuardStage(await temporaryDirectory());
    await stage.edge.start();
    await stage.#publish();
    return stage;
  }

  get controlPort(): number {
    return this.edge.addresses.control.port;
  }

  get httpPort(): number {
    return this.edge.addresses.http.port;
  }

  async #publish(): Promise<void> {
    const ports: Record<string, number> = {
      web: await this.#serveHttp1(),
      calls: await this.#serveH2c(),
      victim: await this.#serveH2c(),
      echo: await this.#serveEcho(),
    };
    const client = await RawClient.connect(this.controlPort, { scheme: 'wss' });
    client.auth('admin');
    const { carriers } = await client.next('AuthOk');
    const portOf = new Map<string, number>();
    const mux = new MuxSession({
      role: 'client',
      budget: processBudget(),
      clock: systemClock,
      handlers: {
        onCarrierLost: ({ reason }) => this.gone.push(`carrier: ${reason}`),
        report: rethrow,
        onStream: (stream, { tunnelId }) => {
          const port = portOf.get(tunnelId) ?? 0;
          if (port === 0) stream.refuse({ code: 'dial-refused', text: 'nobody listens' });
          else dialLocal(stream, port);
        },
      },
    });
    for (const token of carriers.tokens.slice(0, 2)) {
      const { socket, rest } = await askUpgrade(this.controlPort, { token, tls: TLS });
      mux.addCarrier(createCarrier(socket, rest));
    }
    const publish = async (name: string, fields: object): Promise<number> => {
      const { tunnel_id, assigned_port = 0 } = await client.registered({ name, ...fields });
      portOf.set(tunnel_id, ports[name] ?? 0);
      return assigned_port;
    };
    await publish('web', { protocol: 'http', subdomain: 'web' });
    await publish('calls', { protocol: 'http', subdomain: 'calls', local_protocol: 'h2c' });
    await publish('victim', { protocol: 'http', subdomain: 'victim', local_protocol: 'h2c' });
    await publish('dead', { protocol: 'http', subdomain: 'dead' });
    await publish('dead-calls', { protocol: 'http', subdomain: 'dead-calls', local_protocol: 'h2c' });
    this.tcpPort = await publish('echo', { protocol: 'tcp' });
    const ticking = setInterval(() => {
      mux.tick(performance.now());
      client.send({ type: 'Ping', id: 1 });
    }, 1000);
    this.#ends.push(
      () => clearInterval(ticking),
      () => mux.close({ code: 'cancelled', text: 'over' }),
      () => client.ws.terminate(),
    );
  }

  async #serveHttp1(): Promise<number> {
    const server = http.createServer(answerHttp1);
    server.on('upgrade', (_request, socket: net.Socket) => {
      socket.on('error', () => {});
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
      socket.pipe(socket);
    });
    this.#ends.push(() => server.closeAllConnections());
    return listening(server);
  }

  async #serveH2c(): Promise<number> {
    const server = http2.createServer();
    server.on('session', (session) => session.on('error', () => {}));
    server.on('stream', (stream, headers) => answerH2c(stream, headers[':path'] ?? ''));
    server.on('sessionError', () => {});
    this.#ends.push(() => server.close());
    return listening(server);
  }

  async #serveEcho(): Promise<number> {
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.pipe(socket);
    });
    this.#ends.push(() => server.close());
    return listening(server);
  }

  // ---- visitors ----

  dialTls(alpn: 'h2' | 'http/1.1', servername = 'web.localhost'): tls.TLSSocket {
    const socket = tls.connect({
      host: '127.0.0.1',
      port: this.edge.addresses.https?.port ?? 0,
      servername,
      ALPNProtocols: [alpn],
      rejectUnauthorized: false,
    });
    socket.on('error', () => {});
    return socket;
  }

  visitHttp2(name = 'web'): http2.ClientHttp2Session {
    const session = http2.connect(`https://${name}.localhost`, { createConnection: () => this.dialTls('h2') });
    session.on('error', () => {});
    this.#sessions.push(session);
    return session;
  }

  /** Opens 200 connections and streams, each in the middle of an exchange. */
  async crowd(): Promise<void> {
    const hold = (name: string): string => `GET /hold HTTP/1.1\r\nHost: ${name}.localhost\r\n\r\n`;
    const upgrade = 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';
    const times = (count: number, open: () => Promise<void>): Promise<void>[] => Array.from({ length: count }, open);
    const sessions = Array.from({ length: 4 }, () => this.visitHttp2());
    await Promise.all([
      ...times(40, () => this.#stand('http/1.1', net.connect(this.httpPort, '127.0.0.1'), hold('web'), 'begun')),
      ...times(20, () => this.#stand('h2c', net.connect(this.httpPort, '127.0.0.1'), hold('calls'), 'begun')),
      ...times(40, () => this.#stand('https', this.dialTls('http/1.1'), hold('web'), 'begun')),
      ...times(40, () => this.#stand('tcp', net.connect(this.tcpPort, '127.0.0.1'), 'ping', 'ping')),
      ...times(20, () => this.#stand('upgraded', net.connect(this.httpPort, '127.0.0.1'), upgrade, '101')),
      ...sessions.flatMap((session) => times(10, () => this.#standHttp2(session))),
    ]);
  }

  async #stand(kind: string, socket: net.Socket, text: string, until: string): Promise<void> {
    let heard = '';
    this.#bystanders.push(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.gone.push(kind));
    socket.write(text);
    await new Promise<void>((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        heard += chunk.toString('latin1');
        if (heard.includes(until)) resolve();
      });
    });
  }

  async #standHttp2(session: http2.ClientHttp2Session): Promise<void> {
    const stream = session.request({ ':path': '/hold' });
    stream.on('error', () => {});
    stream.on('close', () => this.gone.push('http/2'));
    await new Promise<void>((resolve) => stream.once('data', () => resolve()));
  }

  /** Checks that a TCP bystander still gets an echo. */
  async echoes(): Promise<void> {
    const socket = this.#bystanders.find(({ remotePort }) => remotePort === this.tcpPort) as net.Socket;
    const answered = new Promise<string>((resolve) => socket.once('data', (chunk: Buffer) => resolve(String(chunk))));
    socket.write('still');
    if ((await answered) !== 'still') throw new Error('no echo');
  }

  async metric(name: string): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${this.edge.addresses.metrics.port}/metrics`)).text();
    const line = text.split('\n').find((one) => one.startsWith(`${name} `));
    return Number(line?.split(' ').at(-1) ?? 0);
  }

  /** Closes all bystanders, and waits until no connection is counted. */
  async disperse(): Promise<void> {
    for (const socket of this.#bystanders) socket.destroy();
    for (const session of this.#sessions) session.destroy();
    await eventually(async () => {
      if ((await this.metric('tunnel_active_connections')) !== 0) throw new Error('a connection is still counted');
    });
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) end();
    await this.edge.stop({ drainMs: 0 });
    await this.#directory.close();
  }
}
