// The public port for visitors who speak TLS: handshakes within bounds, then each connection goes where its ALPN says.
import { randomBytes } from 'node:crypto';
import type { Server, Socket } from 'node:net';
import {
  createSecureContext,
  createServer,
  type SecureContextOptions,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls';
import { type AcceptedConnection, type ConnectionGate, type ListenOn, listenOrFault } from '@tunnel/http-shell';
import { type AcceptedSocket, acceptingServer, alpnBytes, guard, HandleDuplex, hasTlsHandles } from '@tunnel/mux';
import { ALPN_TUNNEL } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';
import { secureOptionsOf, type TlsFiles } from '../tls/certificate.ts';
import { HandleHandshake, type HandshakeOwner } from '../tls/handle-handshake.ts';
import type { HttpIngress } from './http-ingress.ts';

/** In the order of our liking; a visitor that offers neither is told so in the handshake, one without ALPN gets HTTP/1.1. */
const ALPN_PROTOCOLS = ['h2', 'http/1.1'];
const ONLY_HTTP1 = alpnBytes(['http/1.1']);

type SecureIngress = Pick<HttpIngress, 'accept' | 'acceptHttp2' | 'clients' | 'report'>;

/** A handshake that is under way. */
interface Waiting {
  readonly beganMs: number;
  readonly accepted: AcceptedConnection;
}

export class HttpsPort implements HandshakeOwner {
  readonly #on: ListenOn;
  readonly #ingress: SecureIngress;
  readonly #gate: ConnectionGate;
  readonly #server: Server;
  /** Node's own, for those who need a whole TLSSocket. It does not listen: connections are given to it. */
  readonly #sockets: TlsServer;
  #address: { host: string; port: number } | undefined;
  /** Those that are not through it, oldest first. */
  readonly #handshakes = new Map<AcceptedConnection, Waiting>();
  #isSweeping = false;
  context: HandshakeOwner['context'];
  readonly alpn = ONLY_HTTP1;
  readonly report: SecureIngress['report'];

  constructor(on: ListenOn, files: TlsFiles, ingress: SecureIngress, gate: ConnectionGate) {
    this.#on = on;
    this.#gate = gate;
    this.#ingress = ingress;
    this.report = ingress.report;
    const secure = withTickets(files);
    this.context = createSecureContext(secure);
    this.#sockets = createServer({
      ...secure,
      // A client says so, whatever else it offers.
      ALPNProtocols: ingress.clients === null ? ALPN_PROTOCOLS : [ALPN_TUNNEL, ...ALPN_PROTOCOLS],
      handshakeTimeout: EDGE_LIMITS.TLS_HANDSHAKE_TIMEOUT_MS,
    });
    const { report } = ingress;
    guard.accept(this.#sockets, 'secureConnection', report, 'https', (socket: TLSSocket) => this.#onSecure(socket));
    // Strangers' handshakes fail all the time, and plain HTTP comes here by mistake: closed without a word.
    guard.accept(this.#sockets, 'tlsClientError', report, 'https', (_error, socket: TLSSocket) => socket.destroy());
    const take = (socket: AcceptedSocket): void => this.#onConnection(socket);
    this.#server = acceptingServer({
      keepAliveMs: EDGE_LIMITS.VISITOR_KEEPALIVE_MS,
      report,
      where: 'https.connection',
      take,
    });
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error(`${this.#on.key} is not open`);
    return this.#address;
  }

  get handshakes(): number {
    return this.#handshakes.size;
  }

  async start(): Promise<void> {
    this.#address = await listenOrFault(this.#server, this.#on, {
      backlog: EDGE_LIMITS.VISITOR_BACKLOG,
      onAcceptError: (error) => this.#gate.onAcceptError(error),
    });
  }

  /** For handshakes from now on; connections do not notice. */
  renew(files: TlsFiles): void {
    const secure = withTickets(files);
    this.context = createSecureContext(secure);
    this.#sockets.setSecureContext(secure);
  }

  stop(): void {
    if (this.#server.listening) this.#server.close();
  }

  #onConnection(socket: AcceptedSocket): void {
    const accepted = this.#gate.accept('https', socket);
    if (accepted === null) return;
    this.#wait(accepted);
    if (socket instanceof HandleDuplex && hasTlsHandles()) socket.read(new HandleHandshake(socket, accepted, this));
    else if (socket instanceof HandleDuplex) this.takesSocket(socket.release(), accepted, null);
    else this.takesSocket(socket, accepted, null);
  }

  #wait(accepted: AcceptedConnection): void {
    this.#handshakes.set(accepted, { beganMs: performance.now(), accepted });
    accepted.whenClosed = this.#isOver;
    if (!this.#isSweeping) this.#sweepIn(EDGE_LIMITS.TLS_HANDSHAKE_TIMEOUT_MS);
    if (this.#handshakes.size <= EDGE_LIMITS.TLS_HANDSHAKES_MAX) return;
    // An honest visitor is through within a round trip or two: whoever takes longest is given up, and not the newcomer.
    for (const oldest of this.#handshakes.keys()) {
      this.#handshakes.delete(oldest);
      oldest.close();
      return;
    }
  }

  /** Whoever closed it: the visitor, the gate or ourselves. */
  readonly #isOver = (accepted: AcceptedConnection): void => {
    this.#handshakes.delete(accepted);
  };

  /** One timer for all, since they wait equally long. */
  #sweepIn(ms: number): void {
    this.#isSweeping = true;
    setTimeout(() => this.#sweep(), ms).unref();
  }

  #sweep(): void {
    this.#isSweeping = false;
    const nowMs = performance.now();
    for (const { beganMs, accepted } of this.#handshakes.values()) {
      const leftMs = beganMs + EDGE_LIMITS.TLS_HANDSHAKE_TIMEOUT_MS - nowMs;
      if (leftMs > 0) return this.#sweepIn(Math.ceil(leftMs));
      this.#handshakes.delete(accepted);
      accepted.close();
    }
  }

  // ---- from handshakes on bare handles ----

  /** It is through, and speaks HTTP/1.1. */
  isSecure(duplex: HandleDuplex, accepted: AcceptedConnection): void {
    this.#handshakes.delete(accepted);
    this.#ingress.accept(duplex, 'https', accepted);
  }

  /** node:tls does the handshake. `first`: what was read already; null socket: it is gone. */
  takesSocket(socket: Socket | null, accepted: AcceptedConnection, first: Buffer | null): void {
    if (socket === null) return;
    // Whoever hangs up in the handshake has gone for good.
    socket.allowHalfOpen = false;
    if (first !== null) socket.unshift(first);
    this.#sockets.emit('connection', socket);
  }

  #onSecure(socket: TLSSocket): void {
    const accepted = this.#gate.find(socket);
    // It was closed within the handshake.
    if (accepted === undefined) {
      socket.destroy();
      return;
    }
    this.#handshakes.delete(accepted);
    if (socket.alpnProtocol === 'h2') return this.#ingress.acceptHttp2(socket, accepted);
    if (socket.alpnProtocol === ALPN_TUNNEL) return this.#ingress.clients?.takeOver(socket, accepted, null);
    // Not sooner: whoever hangs up in the handshake has gone for good.
    socket.allowHalfOpen = true;
    this.#ingress.accept(socket, 'https', accepted);
  }
}

/** Both ways to do a handshake take each other's tickets. A renewal begins with keys of its own: who comes with an older ticket shakes hands in full. */
const withTickets = (files: TlsFiles): SecureContextOptions => ({
  ...secureOptionsOf(files),
  ticketKeys: randomBytes(48),
  sessionIdContext: 'visitors',
});
