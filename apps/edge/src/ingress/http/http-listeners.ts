// The public HTTP ports of an edge: the plain one and, with a certificate, the one for TLS beside it. They accept and hand over; closing
// them leaves accepted connections alone.
import type { Server } from 'node:net';
import type { ServerConfig } from '@tunnel/config/server';
import { type ConnectionGate, type ListenOn, listenOrFault } from '@tunnel/http-shell';
import { acceptingServer } from '@tunnel/mux';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import type { CertificateStore } from '../tls/certificate-store.ts';
import type { ChallengeHandshakes } from '../tls/challenge-handshakes.ts';
import type { Passthrough } from '../tls/tls-door.ts';
import { noTlsTotals, type TlsTotals } from '../tls/tls-totals.ts';
import type { HttpIngress } from './http-ingress.ts';
import { HttpsPort } from './https-port.ts';

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

export interface HttpListenersOptions {
  readonly server: ServerTable;
  readonly ingress: HttpIngress;
  readonly gate: ConnectionGate;
  readonly clock: Clock;
  readonly certificates: CertificateStore;
  /** null: there are no tunnels whose TLS is passed on. */
  readonly passthrough: Passthrough | null;
  /** null: no challenge is answered here. */
  readonly challenges: ChallengeHandshakes | null;
}

export class HttpListeners {
  readonly #given: HttpListenersOptions;
  readonly #plain: HttpPort;
  /** Made at the start, when it is known whether there is one. */
  #secure: HttpsPort | undefined;
  readonly #noTotals = noTlsTotals();

  constructor(options: HttpListenersOptions) {
    const { server, ingress, gate } = options;
    this.#given = options;
    this.#plain = new HttpPort({ host: server.host, port: server.http_port, key: '[server] http_port' }, ingress, gate);
  }

  get http(): Address {
    return this.#plain.address;
  }

  /** null: there is no certificate. */
  get https(): Address | null {
    return this.#secure?.address ?? null;
  }

  /** What became of connections to the https port. */
  get tlsTotals(): TlsTotals {
    return this.#secure?.totals ?? this.#noTotals;
  }

  /** By https where a certificate covers the host at this moment. */
  publicHttp(host: string): PublicHttp {
    const port = this.#securePortOf(host);
    return port === null ? { scheme: 'http', port: this.#plain.address.port } : { scheme: 'https', port };
  }

  /** Where a plain visitor of this host is sent; null: it is served. */
  redirectPort(host: string): number | null {
    return this.#given.server.plain_http === 'redirect' ? this.#securePortOf(host) : null;
  }

  /** A last dot in it makes no difference. */
  #securePortOf(host: string): number | null {
    if (this.#secure === undefined) return null;
    const name = host.endsWith('.') ? host.slice(0, -1) : host;
    return this.#given.certificates.covers(name) ? this.#secure.address.port : null;
  }

  /** Rejects with a fault when a port is taken; stop() closes what is open then. */
  async start({ isSecure }: { readonly isSecure: boolean }): Promise<void> {
    const { host, https_port: port } = this.#given.server;
    if (isSecure) {
      this.#secure = new HttpsPort({ ...this.#given, on: { host, port, key: '[server] https_port' } });
      await this.#secure.start();
    }
    await this.#plain.start();
  }

  /** Another day, another key of tickets. */
  renew(): void {
    this.#secure?.renew();
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
    this.#server = acceptingServer({
      keepAliveMs: EDGE_LIMITS.VISITOR_KEEPALIVE_MS,
      report: ingress.report,
      where: 'http.connection',
      take: (socket) => {
        const accepted = gate.accept('http', socket);
        if (accepted !== null) ingress.accept(socket, 'http', accepted);
      },
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
