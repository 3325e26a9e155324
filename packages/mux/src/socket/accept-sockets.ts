// Accepts connections for those who read and write bytes: on bare handles where Node has them, else as its own sockets.
import * as net from 'node:net';
import { getSystemErrorName } from 'node:util';
import type { ReportInternalError } from '../loop/guard.ts';
import { HandleDuplex } from '../native/handle-duplex.ts';
import { type NodeHandles, nodeHandles, type StreamHandle, takeAccepted } from '../native/node-handles.ts';
import { adoptSocket, type SocketDuplex } from './socket-duplex.ts';

/** As it was accepted: nothing of it is read yet. endOf() makes one end of either. */
export type AcceptedSocket = net.Socket | HandleDuplex;

interface AcceptOptions {
  /** A peer that vanished without a word is found by the kernel after this. */
  readonly keepAliveMs: number;
  readonly take: (socket: AcceptedSocket) => void;
  /** take() threw: that connection is destroyed. */
  readonly report: ReportInternalError;
  /** What the guarded call is named in reports: `tcp.connection`. */
  readonly where: string;
}

/** Does not listen yet; an accept that fails is its event 'error'. Closing it leaves accepted connections alone. */
export const acceptingServer = ({ keepAliveMs, take, report, where }: AcceptOptions): net.Server => {
  const server = net.createServer({
    allowHalfOpen: true,
    noDelay: true,
    // Nothing is read before whoever takes it has put its own reads in place.
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

/** The end of an accepted connection, made once. */
export const endOf = (socket: AcceptedSocket): SocketDuplex | HandleDuplex =>
  socket instanceof HandleDuplex ? socket : adoptSocket(socket);
