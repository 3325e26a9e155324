// A local service that counts received and sent bytes, as the measure for the charges of a tunnel.
import { createServer as createWeb } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface CountedService {
  readonly port: number;
  /** Sum of received and sent bytes over all connections. */
  readonly bytes: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
  close(): Promise<void>;
}

const PATTERN = Buffer.alloc(64 * 1024, 'carried ');

const counted = async (server: ReturnType<typeof createServer>): Promise<CountedService> => {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    // Visitors can leave at any time, so connection errors are ignored.
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sumOf = (bytes: (socket: Socket) => number): number =>
    [...sockets].reduce((sum, socket) => sum + bytes(socket), 0);
  return {
    port: (server.address() as AddressInfo).port,
    get bytes() {
      return sumOf(({ bytesRead, bytesWritten }) => bytesRead + bytesWritten);
    },
    get bytesRead() {
      return sumOf(({ bytesRead }) => bytesRead);
    },
    get bytesWritten() {
      return sumOf(({ bytesWritten }) => bytesWritten);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
};

/** Starts a counted echo service. */
export const countedEcho = (): Promise<CountedService> =>
  counted(createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)));

/** Starts a counted web service that reads the whole body of each request and responds with the number of bytes given in the path. */
export const countedWeb = (): Promise<CountedService> =>
  counted(
    createWeb((request, response) => {
      request.resume().on('end', () => response.end(Buffer.alloc(Number(request.url?.slice(1)), 'w')));
    }),
  );

/** Starts a counted service that sends an endless stream, as fast as the visitor reads. */
export const countedSource = (): Promise<CountedService> =>
  counted(
    createServer((socket) => {
      const send = (): void => {
        while (socket.writable && socket.write(PATTERN));
      };
      socket.on('drain', send);
      socket.resume();
      send();
    }),
  );
