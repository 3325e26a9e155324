// Swallows what it gets and keeps only the count and the hash, so that a transfer of any size can be checked.
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { startTcpServer, type TcpServer } from './tcp-server.ts';

export interface SinkConnection {
  readonly bytes: number;
  /** SHA-256 hex of all bytes; null until the peer has sent its FIN. */
  readonly hash: string | null;
  readonly ended: 'open' | 'finished' | 'closed';
}

export interface SinkServer extends TcpServer {
  /** In the order of their arrival; those that are gone stay. */
  readonly connections: readonly SinkConnection[];
  totalBytes(): number;
  /** No byte is read from now on, also on later connections: a service that hangs. */
  stopReading(): void;
  startReading(): void;
}

export const startSinkServer = async (): Promise<SinkServer> => {
  const connections: SinkConnection[] = [];
  const sockets = new Set<Socket>();
  let reading = true;
  const server = await startTcpServer((socket) => {
    connections.push(sinkOf(socket));
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    if (!reading) socket.pause();
  });
  const setReading = (on: boolean): void => {
    reading = on;
    for (const socket of sockets) {
      if (on) socket.resume();
      else socket.pause();
    }
  };
  return Object.assign(server, {
    connections,
    totalBytes: () => connections.reduce((sum, connection) => sum + connection.bytes, 0),
    stopReading: () => setReading(false),
    startReading: () => setReading(true),
  });
};

const sinkOf = (socket: Socket): SinkConnection => {
  const hash = createHash('sha256');
  const sink: { -readonly [Key in keyof SinkConnection]: SinkConnection[Key] } = {
    bytes: 0,
    hash: null,
    ended: 'open',
  };
  socket.on('data', (chunk) => {
    sink.bytes += chunk.length;
    hash.update(chunk);
  });
  socket.on('end', () => {
    sink.hash = hash.digest('hex');
    sink.ended = 'finished';
    socket.end();
  });
  socket.on('close', () => {
    if (sink.ended === 'open') sink.ended = 'closed';
  });
  return sink;
};
