// A small proxy that answers CONNECT, then the client's TLS with a certificate of its own, and speaks TLS to the edge: what it passes on it could read.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';

/** `alpn`: what the edge has taken so far. */
export async function startOpeningProxy({ port, key, cert, targetPort }) {
  const sockets = new Set();
  const alpn = new Set();
  const opener = createTlsServer({ key, cert, ALPNProtocols: ['http/1.1'] }, (inside) => {
    const onward = connectTls({
      port: targetPort,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
    });
    onward.once('secureConnect', () => alpn.add(onward.alpnProtocol));
    for (const [one, other] of [
      [inside, onward],
      [onward, inside],
    ]) {
      sockets.add(one);
      one
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(one);
          other.destroy();
        });
      one.pipe(other);
    }
  });
  opener.on('tlsClientError', (_error, socket) => socket.destroy());
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      opener.emit('connection', socket);
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { alpn, close };
}
