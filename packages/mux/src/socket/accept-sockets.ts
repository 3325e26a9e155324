// Accepts connections as native handles where Node.js supports them, else as net.Socket.
import * as net from 'node:net';
import { getSystemErrorName } from 'node:util';
import type { ReportInternalError } from '../loop/guard.ts';
import { HandleDuplex } from '../native/handle-duplex.ts';
import { type NodeHandles, nodeHandles, type StreamHandle, takeAccepted } from '../native/node-handles.ts';
import { adoptSocket, type SocketDuplex } from './socket-duplex.ts';

/** An accepted connection with no bytes read yet. endOf() converts both kinds to a ByteDuplex. */
export type AcceptedSocket = net.Socket | HandleDuplex;

interface AcceptOptions {
  /** TCP keep-alive delay of accepted connections. The kernel detects peers that disappeared without closing. */
  readonly keepAliveMs: number;
  readonly take: (socket: AcceptedSocket) => void;
  /** Reports an exception thrown by take(), the callback for accepted connections. The connection is destroyed. */
  readonly report: ReportInternalError;
  /** Name of the guarded callback in error reports, for example `tcp.connection`. */
  readonly where: string;
}

/** Creates a server that does not listen yet. A failed accept is emitted as 'error'. Closing the server keeps accepted connections open. */
export const acceptingServer = ({ keepAliveMs, take, report, where }: AcceptOptions): net.Server => {
  const server = net.createServer({
    allowHalfOpen: true,
    noDelay: true,
    // Pauses an accepted connection: reading starts only after its owner has attached a reader.
    pauseOnConnect: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveMs,
  });
  const takeGuarded = (socket: AcceptedSocket): void => {
    try {
      take(socket);
    } catch (error) {
      report(error, where);
      socket.destroy();
    }
  };
  const takeHandle = (node: NodeHandles, status: number, handle: StreamHandle | undefined): void => {
    if (handle === undefined) server.emit('error', acceptError(status));
    else takeGuarded(new HandleDuplex(handle, node));
  };
  server.on('connection', takeGuarded);
  server.on('listening', () => {
    const node = nodeHandles();
    if (node === null) return;
    takeAccepted(server, Math.trunc(keepAliveMs / 1000), (status, handle) => takeHandle(node, status, handle));
  });
  return server;
};

const acceptError = (errno: number): NodeJS.ErrnoException => {
  const code = getSystemErrorName(errno);
  return Object.assign(new Error(`accept ${code}`), { errno, code, syscall: 'accept' });
};

/** Returns the ByteDuplex of an accepted connection. Call once per connection. */
export const adoptAccepted = (socket: AcceptedSocket): SocketDuplex | HandleDuplex =>
  socket instanceof HandleDuplex ? socket : adoptSocket(socket);
