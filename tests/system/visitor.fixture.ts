// A TCP visitor at the public end of a tunnel.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Connects a visitor. Half-open connections are allowed, so that a visitor can still receive after its own FIN. */
export const visit = async (port: number): Promise<Socket> => {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  // Tests of the end of a connection add a separate listener.
  socket.on('error', () => {});
  return socket;
};

/** Sends the text, and returns as many bytes of the response as the text has. */
export const ask = async (socket: Socket, text: string): Promise<string> => {
  socket.write(text);
  return readText(socket, Buffer.byteLength(text));
};

export const readText = async (socket: Socket, bytes: number): Promise<string> => {
  let heard = Buffer.alloc(0);
  while (heard.length < bytes) {
    const chunk = socket.read(Math.min(bytes - heard.length, socket.readableLength || 1)) as Buffer | null;
    if (chunk !== null) heard = Buffer.concat([heard, chunk]);
    else if (socket.readableEnded || socket.destroyed) throw new Error(`ended after ${heard.length} of ${bytes} bytes`);
    else await Promise.race([once(socket, 'readable'), once(socket, 'close')]);
  }
  return heard.toString();
};

/** Returns all bytes until the FIN of the tunnel. The visitor's own direction stays open. */
export const readAll = (socket: Socket): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks)));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed after ${Buffer.concat(chunks).length} bytes, without a FIN`)));
  });

/** Makes a complete visit: sends all bytes and a FIN, then reads the whole response. */
export const sendAndReadAll = async (port: number, bytes: Uint8Array): Promise<Buffer> => {
  const socket = await visit(port);
  socket.end(bytes);
  return readAll(socket);
};

/** Returns how a connection without any data ends: `ECONNREFUSED`, `ECONNRESET`, or `closed` after a FIN. */
export const fateOf = (port: number): Promise<string> => endOf(connect({ host: '127.0.0.1', port }));

/** Returns how an open connection ends, with the same values as `fateOf`. */
export const endOf = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('end', () => {
      socket.end();
      resolve('closed');
    });
    socket.on('close', () => resolve('closed'));
    socket.resume();
  });
