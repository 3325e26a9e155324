// Cuts a connection off, with a TCP reset where there is one to be had.
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/**
 * While the socket's own end is on its way libuv refuses a reset (EINVAL), and Node has let go of the handle by then: the
 * descriptor would stay open for as long as the process lives. So the end goes out first.
 */
export const resetSafely = (socket: Socket): void => {
  // Below TLS there is no reset to be had: its peer sees a close without the closing alert.
  if (socket.connecting || socket instanceof TLSSocket) socket.destroy();
  else if (isEnding(socket)) socket.once('finish', () => socket.resetAndDestroy());
  else socket.resetAndDestroy();
};

/** Everything before the end has left. The end itself takes one turn of the loop, whatever the peer does. */
const isEnding = (socket: Socket): boolean =>
  socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
