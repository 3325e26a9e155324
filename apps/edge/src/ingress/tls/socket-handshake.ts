// TLS handshake on a Node socket, where bare handles are not available. The ClientHello is read as a stream and put back afterwards.
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { AcceptedConnection, ClientHello } from '@tunnel/http-shell';
import type { StoredCertificate } from './certificate-store.ts';
import type { HandleHandshakeOwner } from './handle-handshake.ts';
import { PendingHandshake } from './pending-handshake.ts';
import type { PassedRoute, Passthrough } from './sni-router.ts';

type SocketHandshakeOwner = Omit<HandleHandshakeOwner, 'isSecure'>;

export class SocketHandshake extends PendingHandshake {
  readonly #socket: Socket;
  readonly #owner: SocketHandshakeOwner;

  constructor(socket: Socket, accepted: AcceptedConnection, owner: SocketHandshakeOwner) {
    super(accepted, owner);
    this.#socket = socket;
    this.#owner = owner;
  }

  start(): void {
    const socket = this.#socket;
    socket.on('error', () => {});
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.resume();
  }

  readonly #onEnd = (): void => this.destroy();

  readonly #onData = (chunk: Buffer): void => {
    try {
      if (!this.take(chunk, 0, chunk.length)) this.#stop();
    } catch (error) {
      this.abandon(error, 'https.hello');
    }
  };

  #stop(): void {
    this.#socket.off('data', this.#onData).pause();
  }

  // ---- handing over: deferred, because a stream cannot be handed over while it is being read ----

  protected secure(_context: SecureContext, _hello: ClientHello, certificate: StoredCertificate): boolean {
    this.bytes.keep();
    this.#later((socket) => this.#owner.takesSocket(socket, this.bytes.all, certificate));
    return false;
  }

  protected challenge(): void {
    this.#later((socket) => this.#owner.takesChallenge(socket, this.bytes.all));
  }

  protected passOn(to: Pick<Passthrough, 'accept'>, route: PassedRoute): boolean {
    this.#later((socket) => {
      const hello = this.bytes.all;
      this.#owner.leaves(this.accepted, 'passthrough');
      to.accept(socket, this.accepted, route, hello);
    });
    return false;
  }

  #later(giveAway: (socket: Socket) => void): void {
    this.#stop();
    setImmediate(() => {
      if (this.#socket.destroyed) return;
      this.#socket.off('end', this.#onEnd);
      try {
        giveAway(this.#socket);
        this.bytes.drop();
      } catch (error) {
        this.abandon(error, 'https.handshake');
      }
    });
  }

  protected say(alert: Buffer): void {
    this.#socket.end(alert, () => this.#socket.destroy());
  }

  protected cut(): void {
    this.#socket.resetAndDestroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
