// The public HTTP ports of an edge: the plain one and, with a certificate, the one for TLS beside it. They accept and hand over; closing
// them leaves accepted connections alone.
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type TlsOptions, type Server as TlsServer } from 'node:tls';
import { type AcceptedConnection, type ConnectionGate, type ListenOn, listenOrFault } from '@tunnel/http-shell';
import { guard } from '@tunnel/mux';
import { ALPN_TUNNEL } from '@tunnel/protocol';
import type { ServerConfig } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import { secureOptionsOf, type TlsFiles } from '../tls/certificate.ts';
import type { HttpIngress } from './http-ingress.ts';

/** Where people are told to come. */
export interface PublicHttp {
  readonly scheme: 'http' | 'https';
  readonly port: number;
}

const USUAL_PORT = { http: 80, https: 443 } as const;

export const httpUrl = ({ scheme, port }: PublicHttp, host: string): string =>
  `${scheme}://${host}${port === USUAL_PORT[scheme] ? '' : `:${port}`}`;

type Address = HttpPort['address'];
type ServerTable = Pick<ServerConfig['server'], 'host' | 'http_port' | 'https_port' | 'plain_http'>;

export class HttpListeners {
  readonly #server: ServerTable;
  readonly #ingress: HttpIngress;
  readonly #gate: ConnectionGate;
  readonly #plain: HttpPort;
  /** Made at the start, when the certificate is known. */
  #secure: HttpsPort | undefined;

  constructor(server: ServerTable, ingress: HttpIngress, gate: ConnectionGate) {
    this.#server = server;
    this.#ingress = ingress;
    this.#gate = gate;
    this.#plain = new HttpPort({ host: server.host, port: server.http_port, key: '[server] http_port' }, ingress, gate);
  }

  get http(): Address {
    return this.#plain.address;
  }

  /** null: there is no certificate. */
  get https(): Address | null {
    return this.#secure?.address ?? null;
  }

  get publicHttp(): PublicHttp {
    const secure = this.#secure;
    return secure === undefined
      ? { scheme: 'http', port: this.#plain.address.port }
      : { scheme: 'https', port: secure.address.port };
  }

  /** Where a plain visitor is sent; null: it is served. */
  get redirectPort(): number | null {
    return this.#server.plain_http === 'redirect' ? (this.#secure?.address.port ?? null) : null;
  }

  /** Rejects with a fault when a port is taken; stop() closes what is open then. */
  async start(certificate: TlsFiles | null): Promise<void> {
    const { host, https_port: port } = this.#server;
    if (certificate !== null) {
      const on = { host, port, key: '[server] https_port' };
      this.#secure = new HttpsPort(on, certificate, this.#ingress, this.#gate);
      await this.#secure.start();
    }
    await this.#plain.start();
  }

  renew(certificate: TlsFiles): void {
    this.#secure?.renew(certificate);
  }

  /** Accepted connections live on. */
  stop(): void {
    this.#plain.stop();
    this.#secure?.stop();
  }
}

/** Without TLS. */
export class HttpPort {
  readonly #server: Server;
  readonly #on: ListenOn;
  readonly #gate: ConnectionGate;
  #address: { host: string; port: number } | undefined;

  constructor(on: ListenOn, ingress: Pick<HttpIngress, 'accept' | 'report'>, gate: ConnectionGate) {
    this.#on = on;
    this.#gate = gate;
    this.#server = createServer({
      allowHalfOpen: true,
      noDelay: true,
      // Nothing is read before the ingress has put its own reads in place.
      pauseOnConnect: true,
      keepAlive: true,
      keepAliveInitialDelay: EDGE_LIMITS.VISITOR_KEEPALIVE_MS,
    });
    guard.accept(this.#server, 'connection', ingress.report, 'http', (socket: Socket) => {
      const accepted = gate.accept('http', socket);
      if (accepted !== null) ingress.accept(socket, 'http', accepted);
    });
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error(`${this.#on.key} is not open`);
    return this.#address;
  }

  async start(): Promise<void> {
    this.#address = await listenOrFault(this.#server, this.#on, {
      backlog: EDGE_LIMITS.VISITOR_BACKLOG,
      onAcceptError: (error) => this.#gate.onAcceptError(error),
    });
  }

  stop(): void {
    if (this.#server.listening) this.#server.close();
  }
}

/** In the order of our liking; a visitor that offers neither is told so in the handshake, one without ALPN gets HTTP/1.1. */
const ALPN_PROTOCOLS = ['h2', 'http/1.1'];

type SecureIngress = Pick<HttpIngress, 'accept' | 'acceptHttp2' | 'clients' | 'report'>;

/** Handshakes within bounds, then each connection goes where its ALPN says. */
export class HttpsPort {
  readonly #on: ListenOn;
  readonly #ingress: SecureIngress;
  readonly #gate: ConnectionGate;
  readonly #server: TlsServer;
  #address: { host: string; port: number } | undefined;
  /** Those that are not through it, oldest first. */
  readonly #handshakes = new Set<AcceptedConnection>();

  constructor(on: ListenOn, files: TlsFiles, ingress: SecureIngress, gate: ConnectionGate) {
    this.#on = on;
    this.#gate = gate;
    this.#ingress = ingress;
    // node documents the options of net.createServer here, too; its types know only some.
    const options: TlsOptions & {
      readonly noDelay: boolean;
      readonly keepAlive: boolean;
      keepAliveInitialDelay: number;
    } = {
      ...secureOptionsOf(files),
      // A client says so, whatever else it offers.
      ALPNProtocols: ingress.clients === null ? ALPN_PROTOCOLS : [ALPN_TUNNEL, ...ALPN_PROTOCOLS],
      handshakeTimeout: EDGE_LIMITS.TLS_HANDSHAKE_TIMEOUT_MS,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: EDGE_LIMITS.VISITOR_KEEPALIVE_MS,
    };
    this.#server = createTlsServer(options);
    const { report } = ingress;
    guard.accept(this.#server, 'connection', report, 'https', (socket: Socket) => this.#onConnection(socket));
    guard.accept(this.#server, 'secureConnection', report, 'https', (socket: TLSSocket) => this.#onSecure(socket));
    // Strangers' handshakes fail all the time, and plain HTTP comes here by mistake: closed without a word.
    guard.accept(this.#server, 'tlsClientError', report, 'https', (_error, socket: TLSSocket) => socket.destroy());
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
    this.#server.setSecureContext(secureOptionsOf(files));
  }

  stop(): void {
    if (this.#server.listening) this.#server.close();
  }

  #onConnection(socket: Socket): void {
    const accepted = this.#gate.accept('https', socket);
    if (accepted === null) return;
    this.#handshakes.add(accepted);
    socket.once('close', () => this.#handshakes.delete(accepted));
    if (this.#handshakes.size <= EDGE_LIMITS.TLS_HANDSHAKES_MAX) return;
    // An honest visitor is through within a round trip or two: whoever takes longest is given up, and not the newcomer.
    for (const oldest of this.#handshakes) {
      this.#handshakes.delete(oldest);
      oldest.close();
      return;
    }
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
