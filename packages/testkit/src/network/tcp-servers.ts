// TCP servers for tests on free loopback ports: an echo server, a server that sends bytes, and a server that counts and hashes received
// bytes.

import { createHash } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { deterministicChunks } from '../chance/deterministic-bytes.ts';

export interface TcpServer {
  readonly host: string;
  readonly port: number;
  /** Number of currently open connections. */
  readonly openConnections: number;
  /** Number of connections since the start. */
  readonly totalConnections: number;
  /** Ends every open connection with a RST. */
  resetConnections(): void;
  close(): Promise<void>;
}

export interface TcpServerOptions {
  /** Loopback address of the server. Default: 127.0.0.1. */
  readonly host?: string;
  /** Port of the server. Default: 0, any free port. A specific port is only for restarting on the port of an earlier server. */
  readonly port?: number;
  readonly pauseOnConnect?: boolean;
}

/** Starts a TCP server. All open connections end when the server closes. */
export const startTcpServer = async (
  onConnection: (socket: Socket) => void,
  options: TcpServerOptions = {},
): Promise<TcpServer> => {
  const host = options.host ?? '127.0.0.1';
  const sockets = new Set<Socket>();
  let totalConnections = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: options.pauseOnConnect ?? false });
  server.on('connection', (socket) => {
    totalConnections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // Tests cut connections on purpose. A test that needs the end of a connection listens for 'close'.
    socket.on('error', () => {});
    onConnection(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    host,
    port,
    get openConnections() {
      return sockets.size;
    },
    get totalConnections() {
      return totalConnections;
    },
    resetConnections: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
};

/** Starts a server that sends back the received bytes. After the client's FIN, the server sends the rest and then a FIN (half-close). */
export const startEchoServer = (options: TcpServerOptions = {}): Promise<TcpServer> =>
  startTcpServer((socket) => {
    socket.pipe(socket);
  }, options);

/** Starts a server that sends the same deterministic bytes to every client, as fast as the client reads, followed by a FIN. */
export const startSourceServer = (bytes: number, seed: number): Promise<TcpServer> =>
  startTcpServer((socket) => {
    socket.resume();
    const source = Readable.from(deterministicChunks(bytes, seed), { objectMode: false });
    socket.on('close', () => source.destroy());
    source.pipe(socket);
  });

export interface SinkConnection {
  readonly bytes: number;
  /** SHA-256 of the received bytes, in hex. Null until the client has sent a FIN. */
  readonly hash: string | null;
  readonly ended: 'open' | 'finished' | 'closed';
}

export interface SinkServer extends TcpServer {
  /** Every connection since the start, in the order of arrival. Closed connections stay in the list. */
  readonly connections: readonly SinkConnection[];
  totalBytes(): number;
  /** Stops reading on current and further connections, like a service that hangs. */
  stopReading(): void;
  startReading(): void;
}

/** Starts a server that discards received bytes and keeps only their count and hash, so that transfers of any size can be checked. */
export const startSinkServer = async (): Promise<SinkServer> => {
  const connections: SinkConnection[] = [];
  const sockets = new Set<Socket>();
  let reading = true;
  const server = await startTcpServer((socket) => {
    connections.push(sinkOf(socket));
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    if (!reading) socket.pause();
  });
  const setReading = (on: boolean): void => {
    reading = on;
    for (const socket of sockets) {
      if (on) socket.resume();
      else socket.pause();
    }
  };
  return Object.assign(server, {
    connections,
    totalBytes: () => connections.reduce((sum, connection) => sum + connection.bytes, 0),
    stopReading: () => setReading(false),
    startReading: () => setReading(true),
  });
};

const sinkOf = (socket: Socket): SinkConnection => {
  const hash = createHash('sha256');
  const sink: { -readonly [Key in keyof SinkConnection]: SinkConnection[Key] } = {
    bytes: 0,
    hash: null,
    ended: 'open',
  };
  socket.on('data', (chunk) => {
    sink.bytes += chunk.length;
    hash.update(chunk);
  });
  socket.on('end', () => {
    sink.hash = hash.digest('hex');
    sink.ended = 'finished';
    socket.end();
  });
  socket.on('close', () => {
    if (sink.ended === 'open') sink.ended = 'closed';
  });
  return sink;
};
