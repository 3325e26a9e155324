// Sends the same deterministic bytes to everyone who connects, as fast as they are read, and then a FIN.
import { Readable } from 'node:stream';
import { deterministicChunks } from './deterministic-bytes.ts';
import { startTcpServer, type TcpServer } from './tcp-server.ts';

export const startSourceServer = (bytes: number, seed: number): Promise<TcpServer> =>
  startTcpServer((socket) => {
    socket.resume();
    const source = Readable.from(deterministicChunks(bytes, seed), { objectMode: false });
    socket.on('close', () => source.destroy());
    source.pipe(socket);
  });
