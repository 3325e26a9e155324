// A loopback TCP server on a free port that forgets no connection: close() ends them all.
import { type AddressInfo, createServer, type Socket } from 'node:net';

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
  /** 0, the default: any free port. Another one only to come back on a port that was free before. */
  readonly port?: number;
  readonly pauseOnConnect?: boolean;
}

export const startTcpServer = async (
  onConnection: (socket: Socket) => void,
  options: TcpServerOptions = {},
): Promise<TcpServer> => {
  const host = '127.0.0.1';
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
