// Local services for health probes, on real sockets: healthy, silent, slow and broken services.
import type { Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { startTcpServer, type TcpServer, testCertificate } from '@tunnel/testkit';

export interface Service {
  readonly port: number;
  /** Complete request heads received by the service so far. */
  readonly heads: string[];
  readonly openConnections: () => number;
  readonly close: () => Promise<void>;
}

type Answer = (write: (text: string) => void, end: () => void) => void;

/** Starts a service with a handler for every complete request head. */
export const answering = async (answer: Answer): Promise<Service> => {
  const heads: string[] = [];
  const server = await start((socket) => {
    let text = '';
    socket.on('data', (piece) => {
      text += String(piece);
      if (!text.endsWith('\r\n\r\n')) return;
      heads.push(text);
      answer(
        (words) => void socket.write(words),
        () => void socket.end(),
      );
    });
  });
  return serviceOf(server, heads);
};

/** Starts a service that answers every request with the given text and closes the connection. */
export const saying = (words: string): Promise<Service> =>
  answering((write, end) => {
    write(words);
    end();
  });

/** Starts a service that never sends anything on accepted connections. */
export const silent = async (): Promise<Service> => serviceOf(await start((socket) => socket.resume()), []);

/** Starts a service that greets new connections with the given text and closes them. */
export const greeting = async (words: string): Promise<Service> =>
  serviceOf(await start((socket) => socket.end(words)), []);

/** Starts a service that resets a connection at the first byte. */
export const resetting = async (): Promise<Service> =>
  serviceOf(await start((socket) => socket.on('data', () => socket.resetAndDestroy())), []);

/** Starts a TLS service with an untrusted certificate and a 204 response to every request. */
export const secure = async (): Promise<Service> => {
  const heads: string[] = [];
  const server = createTlsServer(testCertificate(), (socket) => {
    socket.on('error', () => {});
    socket.once('data', (head) => {
      heads.push(String(head));
      socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  return { port, heads, openConnections: () => 0, close };
};

/** Starts a server that closes a connection when the client does, as most services do. */
const start = (onConnection: (socket: Socket) => unknown): Promise<TcpServer> =>
  startTcpServer((socket) => {
    socket.on('end', () => socket.end());
    onConnection(socket);
  });

const serviceOf = (server: TcpServer, heads: string[]): Service => ({
  port: server.port,
  heads,
  openConnections: () => server.openConnections,
  close: () => server.close(),
});
