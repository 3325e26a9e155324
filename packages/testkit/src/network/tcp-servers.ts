// Loopback TCP services for tests, each on a free port: one that echoes, one that sends, one that counts and hashes what it gets.

import { createHash } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { deterministicChunks } from '../chance/deterministic-bytes.ts';

export interface TcpServer {
  readonly host: string;
  readonly port: number;
  /** Connections that are open now. */
  readonly openConnections: number;
  /** Connections since the start. */
  readonly totalConnections: number;
  /** Every open connection ends with a RST. */
  resetConnections(): void;
  close(): Promise<void>;
}

export interface TcpServerOptions {
  /** A loopback address; 127.0.0.1 unless told. */
  readonly host?: string;
  /** 0, the default: any free port. Another one only to come back on a port that was free before. */
  readonly port?: number;
  readonly pauseOnConnect?: boolean;
}

/** Forgets no connection: close() ends them all. */
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
    // Tests cut connections on purpose; who cares listens for 'close'.
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

/** Sends back what it gets; after the peer's FIN it sends the rest and then its own (half-close). */
export const startEchoServer = (options: TcpServerOptions = {}): Promise<TcpServer> =>
  startTcpServer((socket) => {
    socket.pipe(socket);
  }, options);

/** Sends the same deterministic bytes to everyone who connects, as fast as they are read, and then a FIN. */
export const startSourceServer = (bytes: number, seed: number): Promise<TcpServer> =>
  startTcpServer((socket) => {
    socket.resume();
    const source = Readable.from(deterministicChunks(bytes, seed), { objectMode: false });
    socket.on('close', () => source.destroy());
    source.pipe(socket);
  });

export interface SinkConnection {
  readonly bytes: number;
  /** SHA-256 hex of all bytes; null until the peer has sent its FIN. */
  readonly hash: string | null;
  readonly ended: 'open' | 'finished' | 'closed';
}

export interface SinkServer extends TcpServer {
  /** In the order of their arrival; those that are gone stay. */
  readonly connections: readonly SinkConnection[];
  totalBytes(): number;
  /** No byte is read from now on, also on later connections: a service that hangs. */
  stopReading(): void;
  startReading(): void;
}

/** Swallows what it gets and keeps only the count and the hash, so that a transfer of any size can be checked. */
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
