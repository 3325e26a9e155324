// Connections of visitors: read into one static buffer, and none of them lost from sight before its job is over.
import { connect as dial } from 'node:net';
import { connect as dialTls } from 'node:tls';
import { HTTP_HOST } from '../lib/wrk.mjs';

// Not larger: libuv reads up to 32 times in a row while the buffer is filled, and other visitors of this process wait for that.
const READ_BYTES = 64 * 1024;
// Read into and looked at within one callback, hence one for the whole process.
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

export const connections = new Set();

/**
 * Connects, says `first`, and hands every piece to `onRead(bytes, length)`. `ended` settles at the peer's end, and rejects at a reset.
 * @param {{ host: string, port: number, tls?: boolean }} address
 */
export function openConnection(address, first, onRead) {
  const socket = address.tls ? openTls(address, onRead) : openPlain(address, onRead);
  connections.add(socket);
  // Before it is connected: then nothing that the caller writes can come first.
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

/** Whom the certificate names is not what is measured. */
const openTls = ({ host, port }, onRead) =>
  dialTls({ host, port, servername: HTTP_HOST, rejectUnauthorized: false }).on('data', (bytes) =>
    onRead(bytes, bytes.length),
  );

/** A visitor who asks for a stream and never reads a byte of it. */
export function openStalled(address, first) {
  // Paused before it is connected: Node.js would read the first 64 KiB otherwise.
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
