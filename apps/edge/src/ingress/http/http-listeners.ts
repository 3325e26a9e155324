// The public HTTP ports of an edge: the plain one and, with a certificate, the one for TLS beside it. They accept and hand over; closing
// them leaves accepted connections alone.
import type { Server } from 'node:net';
import { type ConnectionGate, type ListenOn, listenOrFault } from '@tunnel/http-shell';
import { acceptingServer } from '@tunnel/mux';
import type { ServerConfig } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import type { TlsFiles } from '../tls/certificate.ts';
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
