// The TLS session of a client, which its later connections to the same server resume.
import type { TLSSocket } from 'node:tls';
import type { Clock } from '@tunnel/runtime';

/** Time for which a session is resumed after a full handshake, as long as the edge's session tickets work. */
const SESSION_MS = 86_400_000;

/**
 * A resumed handshake needs no certificate and no signature. The server can decline, and the handshake is then a full one.
 *
 * A server renews the session on every resumed connection. The client counts the time from the full handshake, because a server whose
 * certificate has expired or was replaced could otherwise be trusted for as long as the client runs.
 */
export class TlsSession {
  readonly #clock: Pick<Clock, 'now'>;
  #session: Buffer | undefined;
  #endsMs = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Session that the next connection resumes. Undefined if the next handshake must be a full one. */
  get current(): Buffer | undefined {
    return this.#clock.now() < this.#endsMs ? this.#session : undefined;
  }

  /** Replaces the session by every session that the server offers on a connection that is about to be opened. */
  keepFrom(socket: TLSSocket): void {
    const resumedEndsMs = this.#endsMs;
    const fullEndsMs = this.#clock.now() + SESSION_MS;
    socket.on('session', (session) => {
      this.#session = session;
      this.#endsMs = socket.isSessionReused() ? resumedEndsMs : fullEndsMs;
    });
  }

  /**
   * Makes the next handshake a full one. Called if a connection ends before the server's first response, in case the server or a device on
   * the way cannot handle resumed sessions.
   */
  forget(): void {
    this.#session = undefined;
  }
}
