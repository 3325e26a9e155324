// TLS handshake on a bare libuv handle. Visitors that only speak HTTP/1.1, and visitors of passthrough tunnels, never need a Node socket.
// For other visitors a Node socket is created.
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { AcceptedConnection, ClientHello } from '@tunnel/http-shell';
import { alpnBytes, type ByteReader, beginTls, type HandleDuplex, hasTlsHandles, type TlsHandshake } from '@tunnel/mux';
import { ALPN_TUNNEL } from '@tunnel/protocol';
import type { StoredCertificate } from './certificate-store.ts';
import { type HandshakeOwner, PendingHandshake } from './pending-handshake.ts';
import type { PassedRoute, Passthrough } from './sni-router.ts';

export interface HandleHandshakeOwner extends HandshakeOwner {
  /** Called when the TLS handshake is complete and the visitor speaks HTTP/1.1. `isResumed`: an earlier TLS session was resumed. */
  isSecure(duplex: HandleDuplex, accepted: AcceptedConnection, isResumed: boolean): void;
  /** Hands the handshake over to node:tls. `first` holds the bytes already read. `socket` is null if the connection has closed. */
  takesSocket(socket: Socket | null, first: Buffer, certificate: StoredCertificate): void;
  /** Hands over a connection of an ACME validation server, like takesSocket(). */
  takesChallenge(socket: Socket | null, first: Buffer): void;
}

const ONLY_HTTP1 = alpnBytes(['http/1.1']);

export class HandleHandshake extends PendingHandshake implements ByteReader, TlsHandshake {
  readonly #duplex: HandleDuplex;
  readonly #owner: HandleHandshakeOwner;

  constructor(duplex: HandleDuplex, accepted: AcceptedConnection, owner: HandleHandshakeOwner) {
    super(accepted, owner);
    this.#duplex = duplex;
    this.#owner = owner;
  }

  onData(bytes: Buffer, start: number, end: number): boolean {
    return this.take(bytes, start, end);
  }

  // ---- handing over ----

  protected secure(context: SecureContext, hello: ClientHello, certificate: StoredCertificate): boolean {
    if (needsSocket(hello) || !hasTlsHandles()) {
      this.bytes.keep();
      // The hand-over is deferred, because a connection cannot be released while it is being read.
      setImmediate(this.#giveAway, (socket, first) => this.#owner.takesSocket(socket, first, certificate));
      return false;
    }
    beginTls(this.#duplex, context, ONLY_HTTP1, this.bytes.all, this);
    this.bytes.drop();
    return true;
  }

  protected challenge(): void {
    setImmediate(this.#giveAway, (socket, first) => this.#owner.takesChallenge(socket, first));
  }

  readonly #giveAway = (take: (socket: Socket | null, first: Buffer) => void): void => {
    try {
      const first = this.bytes.all;
      // If the connection was closed during the handshake, its bytes are discarded.
      if (!this.#duplex.destroyed) take(this.#duplex.release(), first);
      this.bytes.drop();
    } catch (error) {
      this.abandon(error, 'https.handshake');
    }
  };

  /** Hands over a passthrough connection within the read, so that the new reader continues where the handshake stopped. */
  protected passOn(to: Pick<Passthrough, 'accept'>, route: PassedRoute): boolean {
    const hello = this.bytes.all;
    this.#owner.leaves(this.accepted, 'passthrough');
    to.accept(this.#duplex, this.accepted, route, hello);
    return true;
  }

  protected say(alert: Buffer): void {
    this.#duplex.write(alert, 0, alert.length, true);
    this.#duplex.end(() => this.#duplex.destroy());
  }

  protected cut(): void {
    this.#duplex.resetAndDestroy();
  }

  destroy(): void {
    this.#duplex.destroy();
  }

  // ---- events of the handshake and its connection ----

  onSecure(_protocol: string | false, isResumed: boolean): void {
    try {
      this.#owner.isSecure(this.#duplex, this.accepted, isResumed);
    } catch (error) {
      this.abandon(error, 'https.secure');
    }
  }

  /** Failed handshakes from the internet are frequent, so the connection is closed without a log entry. */
  onFailed(): void {
    this.#duplex.destroy();
  }

  onEnd(): void {
    this.onFailed();
  }

  onReset(): void {}

  onDrain(): void {}
}

/** HTTP/2 and the control plane need sockets of Node.js instead of native handles. */
const needsSocket = ({ alpn }: ClientHello): boolean => alpn.includes('h2') || alpn.includes(ALPN_TUNNEL);
