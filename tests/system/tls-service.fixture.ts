// A local service that speaks TLS itself, with a certificate that no edge has, and visitors that look at it.
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { type ConnectionOptions, connect, createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { companyCertificate } from '@tunnel/testkit';

/** Of the service alone: who sees it has shaken hands with nobody else. */
export const SERVICE_CN = 'Company Proxy';

export interface TlsService {
  readonly port: number;
  readonly sockets: TLSSocket[];
  /** What lies below them, in the same order. */
  readonly wires: Socket[];
  close(): Promise<void>;
}

/** `serve` gets each visitor after its handshake. */
export const startTlsService = async (
  serve: (socket: TLSSocket) => void,
  options: TlsOptions = {},
): Promise<TlsService> => {
  const sockets: TLSSocket[] = [];
  const server = createServer({ ...companyCertificate(), allowHalfOpen: true, ...options }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    serve(socket);
  });
  const wires: Socket[] = [];
  server.on('connection', (wire: Socket) => void wires.push(wire));
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port: (server.address() as AddressInfo).port, sockets, wires, close };
};

/** Says what it hears. */
export const echo = (socket: TLSSocket): void => void socket.pipe(socket);

/** Through the edge's https port, trusting the service's certificate alone. */
export const visitTls = async (port: number, host: string, options: ConnectionOptions = {}): Promise<TLSSocket> => {
  const socket = connect({
    host: '127.0.0.1',
    port,
    servername: host,
    ca: companyCertificate().cert,
    checkServerIdentity: () => undefined,
    ...options,
  });
  socket.on('error', () => {});
  await Promise.race([
    once(socket, 'secureConnect'),
    once(socket, 'close').then(() => {
      throw new Error('closed within the handshake');
    }),
  ]);
  return socket;
};
