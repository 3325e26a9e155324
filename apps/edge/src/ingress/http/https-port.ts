// Public TLS port. The SNI of each connection selects its destination; connections terminated at the edge continue with the protocol
// negotiated in the handshake.

import type { Server, Socket } from 'node:net';
import { createServer, type SecureContext, type TLSSocket, type TlsOptions, type Server as TlsServer } from 'node:tls';
import {
  type AcceptedConnection,
  ALPN_CHALLENGE,
  type ConnectionGate,
  foldHost,
  type ListenOn,
  listenOrFault,
} from '@tunnel/http-shell';
import { type AcceptedSocket, acceptingServer, guard, HandleDuplex } from '@tunnel/mux';
import { ALPN_TUNNEL } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import type { CertificateStore, StoredCertificate } from '../tls/certificate-store.ts';
import type { ChallengeHandshakes } from '../tls/challenge-handshakes.ts';
import { HandleHandshake, type HandleHandshakeOwner } from '../tls/handle-handshake.ts';
import { PendingHandshakes, TLS_HANDSHAKE_TIMEOUT_MS } from '../tls/pending-handshakes.ts';
import { type Passthrough, SniRouter } from '../tls/sni-router.ts';
import { SocketHandshake } from '../tls/socket-handshake.ts';
import type { TlsKind, TlsTotals } from '../tls/tls-totals.ts';
import type { HttpIngress } from './http-ingress.ts';

/** ALPN protocols in order of preference. The handshake fails for visitors that offer neither; visitors without ALPN get HTTP/1.1. */
const ALPN_PROTOCOLS = ['h2', 'http/1.1'];

type SecureIngress = Pick<HttpIngress, 'accept' | 'acceptHttp2' | 'clients' | 'report'>;

export interface HttpsPortOptions {
  readonly on: ListenOn;
  readonly certificates: CertificateStore;
  /** Destination of TLS passthrough connections. Null if TLS passthrough is not available. */
  readonly passthrough: Passthrough | null;
  /** Answers ACME tls-alpn-01 challenges. Null if the edge does not answer challenges. */
  readonly challenges: ChallengeHandshakes | null;
  readonly ingress: SecureIngress;
  readonly gate: ConnectionGate;
  readonly clock: Clock;
}

export class HttpsPort implements HandleHandshakeOwner {
  readonly sniRouter: SniRouter;
  readonly certificates: CertificateStore;
  readonly passthrough: Passthrough | null;
  readonly challenges: ChallengeHandshakes | null;
  readonly report: SecureIngress['report'];
  readonly #on: ListenOn;
  readonly #ingress: SecureIngress;
  readonly #gate: ConnectionGate;
  readonly #server: Server;
  /**
   * Node's TLS servers, for connections that need a TLSSocket. `#byName` selects the certificate by SNI, `#forNobody` always shows the
   * certificate for visitors without SNI. Neither listens; connections are passed to them.
   */
  readonly #byName: TlsServer;
  readonly #forNobody: TlsServer;
  /** TLS server for handshakes of ACME tls-alpn-01 validation servers. */
  readonly #forChallenges: TlsServer;
  #shownToNobody: StoredCertificate | null = null;
  #address: { host: string; port: number } | undefined;
  readonly #pending: PendingHandshakes;

  constructor({ on, certificates, passthrough, challenges, ingress, gate, clock }: HttpsPortOptions) {
    this.#pending = new PendingHandshakes(clock);
    this.#on = on;
    this.#gate = gate;
    this.#ingress = ingress;
    this.report = ingress.report;
    this.certificates = certificates;
    this.passthrough = passthrough;
    this.challenges = challenges;
    this.sniRouter = new SniRouter({ certificates, passthrough, challenges, takesClients: ingress.clients !== null });
    // The tunnel protocol comes first, so that ALPN selects it for every client that offers it.
    const alpn = ingress.clients === null ? ALPN_PROTOCOLS : [ALPN_TUNNEL, ...ALPN_PROTOCOLS];
    this.#byName = this.#makeTlsServer({ ALPNProtocols: alpn, SNICallback: this.#contextByName });
    this.#forNobody = this.#makeTlsServer({ ALPNProtocols: alpn });
    this.#forChallenges = this.#makeTlsServer({
      ALPNProtocols: [ALPN_CHALLENGE],
      SNICallback: (name, callback) => answerSni(callback, this.challenges?.contextOf(foldHost(name) ?? '') ?? null),
    });
    this.renew();
    this.#server = acceptingServer({
      keepAliveMs: EDGE_LIMITS.VISITOR_KEEPALIVE_MS,
      report: this.report,
      where: 'https.connection',
      take: (socket) => this.#onConnection(socket),
    });
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error(`${this.#on.key} is not open`);
    return this.#address;
  }

  /** Number of TLS handshakes in progress, counted from the first byte. */
  get handshakes(): number {
    return this.#pending.size;
  }

  get totals(): TlsTotals {
    return this.#pending.totals;
  }

  async start(): Promise<void> {
    this.#address = await listenOrFault(this.#server, this.#on, {
      backlog: EDGE_LIMITS.VISITOR_BACKLOG,
      onAcceptError: (error) => this.#gate.onAcceptError(error),
    });
  }

  /** Rotates the key of TLS session tickets, once a day. Applies to new handshakes; open connections are not affected. */
  renew(): void {
    this.#byName.setSecureContext(this.certificates.terms.optionsOf(null, 'visitors'));
    this.#renewForNobody(this.certificates.forNobody);
  }

  #renewForNobody(certificate: StoredCertificate | null): void {
    this.#shownToNobody = certificate;
    this.#forNobody.setSecureContext(this.certificates.terms.optionsOf(certificate?.pair ?? null, 'visitors'));
  }

  stop(): void {
    if (this.#server.listening) this.#server.close();
  }

  #onConnection(socket: AcceptedSocket): void {
    const accepted = this.#gate.accept('https', socket);
    if (accepted === null) return;
    if (socket instanceof HandleDuplex) {
      const handshake = new HandleHandshake(socket, accepted, this);
      this.#pending.add(handshake);
      socket.read(handshake);
      return;
    }
    const handshake = new SocketHandshake(socket, accepted, this);
    this.#pending.add(handshake);
    handshake.start();
  }

  #makeTlsServer(options: TlsOptions): TlsServer {
    const server = createServer({ ...options, handshakeTimeout: TLS_HANDSHAKE_TIMEOUT_MS });
    guard.accept(server, 'secureConnection', this.report, 'https', (socket: TLSSocket) => this.#onSecure(socket));
    // Failed handshakes from the internet are frequent, so they are closed without a log entry.
    guard.accept(server, 'tlsClientError', this.report, 'https', (_error, socket: TLSSocket) => socket.destroy());
    return server;
  }

  /**
   * Finds the context for an SNI. The context was ready when the connection was routed, in this turn of the event loop or the previous
   * turn; otherwise the certificate was removed since.
   */
  readonly #contextByName: SniCallback = (name, callback) => {
    const host = foldHost(name);
    const own = host === null ? null : this.certificates.ownOf(host);
    answerSni(callback, own === null ? null : this.certificates.contextOf(own));
  };

  // ---- calls from handshakes ----

  leaves(accepted: AcceptedConnection, as: TlsKind): boolean {
    return this.#pending.leaves(accepted, as);
  }

  handshakeBegins(accepted: AcceptedConnection): boolean {
    return this.#gate.handshakeBegins(accepted);
  }

  isSecure(duplex: HandleDuplex, accepted: AcceptedConnection, isResumed: boolean): void {
    this.leaves(accepted, 'terminated');
    this.#gate.handshakeEnds('visitors', isResumed);
    this.#ingress.accept(duplex, 'https', accepted);
  }

  takesSocket(socket: Socket | null, first: Buffer, certificate: StoredCertificate): void {
    if (socket === null) return;
    // A peer that sends FIN during the handshake has disconnected, so the socket closes both directions.
    socket.allowHalfOpen = false;
    socket.unshift(first);
    if (certificate !== this.certificates.forNobody) return void this.#byName.emit('connection', socket);
    // The default certificate was renewed since the previous connection that needed it.
    if (certificate !== this.#shownToNobody) this.#renewForNobody(certificate);
    this.#forNobody.emit('connection', socket);
  }

  takesChallenge(socket: Socket | null, first: Buffer): void {
    if (socket === null) return;
    const accepted = this.#gate.find(socket);
    // The connection is counted before the handshake, because an ACME validation server disconnects as soon as it has seen the certificate.
    if (accepted === undefined || !this.leaves(accepted, 'challenge')) return void socket.destroy();
    socket.allowHalfOpen = false;
    socket.unshift(first);
    this.#forChallenges.emit('connection', socket);
  }

  #onSecure(socket: TLSSocket): void {
    if (socket.alpnProtocol === ALPN_CHALLENGE) return endChallenge(socket);
    const accepted = this.#gate.find(socket);
    const isClient = socket.alpnProtocol === ALPN_TUNNEL;
    // The visitor's connection was closed during the TLS handshake.
    if (accepted === undefined || !this.leaves(accepted, isClient ? 'control' : 'terminated')) {
      socket.destroy();
      return;
    }
    if (isClient) return this.#ingress.clients?.takeOver(socket, accepted, null);
    this.#gate.handshakeEnds('visitors', socket.isSessionReused());
    if (socket.alpnProtocol === 'h2') return this.#ingress.acceptHttp2(socket, accepted);
    // Half-open is allowed only after the handshake: a peer that sends FIN during the handshake has disconnected.
    socket.allowHalfOpen = true;
    this.#ingress.accept(socket, 'https', accepted);
  }
}

/** Closes a challenge connection. Validation consists of the handshake only. */
const endChallenge = (socket: TLSSocket): void => {
  socket.on('error', () => {});
  socket.end(() => socket.destroy());
};

type SniCallback = NonNullable<TlsOptions['SNICallback']>;

const answerSni = (callback: Parameters<SniCallback>[1], context: SecureContext | null): void => {
  if (context === null) callback(new Error('no certificate for this name'));
  else callback(null, context);
};
