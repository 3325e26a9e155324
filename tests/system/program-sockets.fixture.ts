// The connections of one program inside the test's process, so that all of them can be cut at once, as a kill of a process does it.
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
// The channel of client sockets says nothing of tls.connect(); this call is made for all of them.
const connect = Socket.prototype.connect as (...args: unknown[]) => Socket;
Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
  hold(this);
  return connect.apply(this, args);
} as typeof Socket.prototype.connect;

export class ProgramSockets {
  readonly #sockets = new Set<Socket>();

  /** Connections that `program` accepts or dials, now and later, are of this one. */
  of<T>(program: () => T): T {
    return holder.run(this.#sockets, program);
  }

  /** Without a goodbye: the other sides see an end of connection. Settles when the program has seen it, too. */
  async cut(): Promise<void> {
    const sockets = [...this.#sockets];
    const closed = sockets.map((socket) => once(socket, 'close'));
    for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
  }
}
