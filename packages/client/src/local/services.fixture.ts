// Local services that a probe may meet, on real sockets: good ones, silent ones, slow ones, rude ones.
import type { Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { startTcpServer, type TcpServer, testCertificate } from '@tunnel/testkit';

export interface Service {
  readonly port: number;
  /** What was asked of it so far, whole heads. */
  readonly heads: string[];
  readonly openConnections: () => number;
  readonly close: () => Promise<void>;
}

type Answer = (write: (text: string) => void, end: () => void) => void;

/** Answers each request head once it is whole. */
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

/** Answers with these words and closes. */
export const saying = (words: string): Promise<Service> =>
  answering((write, end) => {
    write(words);
    end();
  });

/** Accepts and says nothing. */
export const silent = async (): Promise<Service> => serviceOf(await start((socket) => socket.resume()), []);

/** Speaks first, whoever comes. */
export const greeting = async (words: string): Promise<Service> =>
  serviceOf(await start((socket) => socket.end(words)), []);

/** Accepts and resets at the first byte. */
export const resetting = async (): Promise<Service> =>
  serviceOf(await start((socket) => socket.on('data', () => socket.resetAndDestroy())), []);

/** 204 over TLS, with a certificate that nobody trusts. */
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

/** As most services do, it closes when the other side has. */
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
