// Tracks the connections of a program inside the test process, so that all connections can be cut at once, as by a kill of a process.
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Socket } from 'node:net';

const holder = new AsyncLocalStorage<Set<Socket>>();

const hold = (socket: Socket): void => {
  const sockets = holder.getStore();
  if (sockets === undefined) return;
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
};

subscribe('net.server.socket', (message) => hold((message as { socket: Socket }).socket));
// The diagnostics channel of client sockets does not report tls.connect(), so the method behind every client socket is wrapped.
const connect = Socket.prototype.connect as (...args: unknown[]) => Socket;
Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
  hold(this);
  return connect.apply(this, args);
} as typeof Socket.prototype.connect;

export class ProgramSockets {
  readonly #sockets = new Set<Socket>();

  /** Runs `program`, and tracks connections accepted or dialed by the program, now and later. */
  of<T>(program: () => T): T {
    return holder.run(this.#sockets, program);
  }

  /**
   * Cuts the connections without a closing message, so that peers see a closed connection. Resolves when the program has noticed the end
   * as well.
   */
  async cut(): Promise<void> {
    const sockets = [...this.#sockets];
    const closed = sockets.map((socket) => once(socket, 'close'));
    for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
  }
}
