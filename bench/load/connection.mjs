// Connections of visitors: all are read into a single static buffer, and tracked until their job has ended.
import { connect as dial } from 'node:net';
import { connect as dialTls } from 'node:tls';
import { HTTP_HOST } from '../lib/wrk.mjs';

// Size of the read buffer. A larger buffer would delay other visitors, because libuv reads up to 32 times in a row while the buffer fills
// completely.
const READ_BYTES = 64 * 1024;
// A single buffer for the whole process, because it is filled and read within the same callback.
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

export const connections = new Set();

/**
 * Connects, sends `first`, and passes received bytes to `onRead(bytes, length)`. `ended` resolves at the peer's FIN, and rejects on a reset.
 * @param {{ host: string, port: number, tls?: boolean }} address
 */
export function openConnection(address, first, onRead) {
  const socket = address.tls ? openTls(address, onRead) : openPlain(address, onRead);
  connections.add(socket);
  // Written before the connection is open, so that no other write of the caller can come first.
  socket.write(first);
  const ended = new Promise((resolve, reject) => {
    socket.once('end', resolve);
    socket.once('error', reject);
    socket.once('close', () => {
      connections.delete(socket);
      reject(new Error('a connection was cut off'));
    });
  });
  ended.catch(() => {});
  return { socket, ended };
}

const openPlain = ({ host, port }, onRead) =>
  dial({
    host,
    port,
    noDelay: true,
    onread: {
      buffer: readBuffer,
      callback: (length, bytes) => {
        onRead(bytes, length);
        return true;
      },
    },
  });

/** Opens a TLS connection without certificate validation, because the certificate's name does not matter for the measurement. */
const openTls = ({ host, port }, onRead) =>
  dialTls({ host, port, servername: HTTP_HOST, rejectUnauthorized: false }).on('data', (bytes) =>
    onRead(bytes, bytes.length),
  );

/** Opens a visitor's connection that requests a stream and never reads it. */
export function openStalled(address, first) {
  // Paused before it is connected, because Node.js would otherwise read the first 64 KiB.
  const socket = dial({ ...address, noDelay: true }).pause();
  connections.add(socket);
  socket.once('close', () => connections.delete(socket));
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.write(first);
      resolve(socket);
    });
  });
}
