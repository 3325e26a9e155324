// Someone at the public end of a tunnel.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Half-open connections are kept: who has ended may still listen. */
export const visit = async (port: number): Promise<Socket> => {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  // Whoever cares about the end listens for it.
  socket.on('error', () => {});
  return socket;
};

/** Sends the text and gives back as many bytes as it had. */
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

/** All bytes until the other side's FIN; the own direction stays as it is. */
export const readAll = (socket: Socket): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks)));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed after ${Buffer.concat(chunks).length} bytes, without a FIN`)));
  });

/** A whole visit: everything out, FIN, everything in. */
export const sendAndReadAll = async (port: number, bytes: Uint8Array): Promise<Buffer> => {
  const socket = await visit(port);
  socket.end(bytes);
  return readAll(socket);
};

/** How a visit without a word ends: `ECONNREFUSED`, `ECONNRESET`, or `closed` after a FIN. */
export const fateOf = (port: number): Promise<string> => endOf(connect({ host: '127.0.0.1', port }));

/** The same of a visit that is under way. */
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
