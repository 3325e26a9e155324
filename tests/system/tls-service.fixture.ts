// A local service that speaks TLS with a certificate unknown to every edge, and visitors that check the certificate.
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { type ConnectionOptions, connect, createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { companyCertificate } from '@tunnel/testkit';

/** Common name of the service's certificate. A visitor that sees the name has shaken hands with the service, not with the edge. */
export const SERVICE_CN = 'Company Proxy';

export interface TlsService {
  readonly port: number;
  readonly sockets: TLSSocket[];
  /** TCP sockets below the TLS sockets, in the same order. */
  readonly wires: Socket[];
  close(): Promise<void>;
}

/** Starts the service. `serve` receives a visitor after the handshake. */
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

/** Echoes the data of a visitor. */
export const echo = (socket: TLSSocket): void => void socket.pipe(socket);

/** Connects a visitor through the HTTPS port of the edge, which trusts only the certificate of the service. */
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
