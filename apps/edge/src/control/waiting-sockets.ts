// Connections to the control port that have not asked for an upgrade yet. There is room for so many; then the oldest goes.
import type { Socket } from 'node:net';

export class WaitingSockets {
  readonly #max: number;
  /** By the peer's address and port: over TLS the upgrade comes on another object than the connection did. Oldest first. */
  readonly #sockets = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#sockets.size;
  }

  /** An honest client asks within a round trip, so whoever has waited longest is given up, and not the newcomer. */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    this.#sockets.set(peer, socket);
    socket.once('close', () => {
      if (this.#sockets.get(peer) === socket) this.#sockets.delete(peer);
    });
    if (this.#sockets.size <= this.#max) return;
    for (const [oldest, stranger] of this.#sockets) {
      this.#sockets.delete(oldest);
      stranger.destroy();
      return;
    }
  }

  /** It has asked; from here on others count it. */
  remove(socket: Socket): void {
    this.#sockets.delete(peerOf(socket));
  }
}

const peerOf = (socket: Socket): string => `${socket.remoteAddress ?? ''} ${socket.remotePort ?? ''}`;
