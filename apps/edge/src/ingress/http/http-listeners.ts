// Public HTTP ports of an edge: the plain port and, with a certificate, the TLS port. Ports accept connections and hand them over; closing
// a port does not affect accepted connections.
import type { Server } from 'node:net';
import { publicPorts, type ServerConfig } from '@tunnel/config/server';
import { type ConnectionGate, type ListenOn, listenOrFault } from '@tunnel/http-shell';
import { acceptingServer } from '@tunnel/mux';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import type { CertificateStore } from '../tls/certificate-store.ts';
import type { ChallengeHandshakes } from '../tls/challenge-handshakes.ts';
import type { Passthrough } from '../tls/sni-router.ts';
import { noTlsTotals, type TlsTotals } from '../tls/tls-totals.ts';
import type { HttpIngress } from './http-ingress.ts';
import { HttpsPort } from './https-port.ts';

/** Scheme and port in the public URLs of HTTP tunnels. */
export interface PublicHttp {
  readonly scheme: 'http' | 'https';
  readonly port: number;
}

const USUAL_PORT = { http: 80, https: 443 } as const;

export const httpUrl = ({ scheme, port }: PublicHttp, host: string): string =>
  `${scheme}://${host}${port === USUAL_PORT[scheme] ? '' : `:${port}`}`;

type Address = HttpPort['address'];
type ServerTable = Pick<
  ServerConfig['server'],
  'host' | 'http_port' | 'https_port' | 'plain_http' | 'public_http_port' | 'public_https_port'
>;

export interface HttpListenersOptions {
  readonly server: ServerTable;
  readonly ingress: HttpIngress;
  readonly gate: ConnectionGate;
  readonly clock: Clock;
  readonly certificates: CertificateStore;
  /** Destination of TLS passthrough connections. Null if TLS passthrough is not available. */
  readonly passthrough: Passthrough | null;
  /** Answers ACME tls-alpn-01 challenges. Null if the edge does not answer challenges. */
  readonly challenges: ChallengeHandshakes | null;
}

export class HttpListeners {
  readonly #options: HttpListenersOptions;
  readonly #plain: HttpPort;
  /** TLS port. Created by start(), when it is known whether TLS is enabled. */
  #secure: HttpsPort | undefined;
  readonly #noTotals = noTlsTotals();

  constructor(options: HttpListenersOptions) {
    const { server, ingress, gate } = options;
    this.#options = options;
    this.#plain = new HttpPort({ host: server.host, port: server.http_port, key: '[server] http_port' }, ingress, gate);
  }

  get http(): Address {
    return this.#plain.address;
  }

  /** Address of the public https port. Null without a certificate. */
  get https(): Address | null {
    return this.#secure?.address ?? null;
  }

  /** Outcomes of connections to the public https port. */
  get tlsTotals(): TlsTotals {
    return this.#secure?.totals ?? this.#noTotals;
  }

  /** Ports in public URLs. The https port is null without a certificate. */
  get publicPorts(): { readonly http: number; readonly https: number | null } {
    const https_port = this.#secure?.address.port;
    const ports = { http_port: this.#plain.address.port, https_port: https_port ?? 0 };
    const { http, https } = publicPorts({ ...this.#options.server, ...ports });
    return { http, https: https_port === undefined ? null : https };
  }

  /** Returns https if a certificate covers the host at the moment, otherwise http. */
  publicHttp(host: string): PublicHttp {
    const port = this.#securePortOf(host);
    return port === null ? { scheme: 'http', port: this.publicPorts.http } : { scheme: 'https', port };
  }

  /** Returns the public https port to which plain requests for the host are redirected, or null if they are served without a redirect. */
  redirectPort(host: string): number | null {
    return this.#options.server.plain_http === 'redirect' ? this.#securePortOf(host) : null;
  }

  /** Returns the public https port if a certificate covers the host, else null. A trailing dot of the host is ignored. */
  #securePortOf(host: string): number | null {
    if (this.#secure === undefined) return null;
    const name = host.endsWith('.') ? host.slice(0, -1) : host;
    return this.#options.certificates.covers(name) ? this.publicPorts.https : null;
  }

  /** Opens the ports. Rejects with a fault if a port is taken; stop() then closes any port that is open already. */
  async start({ isSecure }: { readonly isSecure: boolean }): Promise<void> {
    const { host, https_port: port } = this.#options.server;
    if (isSecure) {
      this.#secure = new HttpsPort({ ...this.#options, on: { host, port, key: '[server] https_port' } });
      await this.#secure.start();
    }
    await this.#plain.start();
  }

  /** Rotates the key of TLS session tickets. Must be called once a day. */
  renew(): void {
    this.#secure?.renew();
  }

  /** Closes the public HTTP ports. Accepted connections stay open. */
  stop(): void {
    this.#plain.stop();
    this.#secure?.stop();
  }
}

/** A public HTTP port without TLS. */
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
