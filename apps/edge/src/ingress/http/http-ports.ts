// The public HTTP ports of an edge: the plain one and, with a certificate, the one for TLS beside it.
import type { Logger, ServerConfig } from '@tunnel/runtime';
import type { PublicHttp } from '../../control/public-url.ts';
import type { TlsFiles } from '../../tls-files.ts';
import type { HttpIngress } from './http-ingress.ts';
import { HttpPort } from './http-port.ts';
import { HttpsPort } from './https-port.ts';

type Address = HttpPort['address'];
type ServerTable = Pick<ServerConfig['server'], 'host' | 'http_port' | 'https_port' | 'plain_http'>;

export class HttpPorts {
  readonly #server: ServerTable;
  readonly #ingress: HttpIngress;
  readonly #logger: Logger;
  readonly #plain: HttpPort;
  /** Made at the start, when the certificate is known. */
  #secure: HttpsPort | undefined;

  constructor(server: ServerTable, ingress: HttpIngress, logger: Logger) {
    this.#server = server;
    this.#ingress = ingress;
    this.#logger = logger;
    this.#plain = new HttpPort(
      { host: server.host, port: server.http_port, key: '[server] http_port' },
      ingress,
      logger,
    );
  }

  get http(): Address {
    return this.#plain.address;
  }

  /** null: there is no certificate. */
  get https(): Address | null {
    return this.#secure?.address ?? null;
  }

  /** How people are told to come. */
  get publicHttp(): PublicHttp {
    const secure = this.#secure;
    return secure === undefined
      ? { scheme: 'http', port: () => this.#plain.address.port }
      : { scheme: 'https', port: () => secure.address.port };
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
      this.#secure = new HttpsPort(on, certificate, this.#ingress, this.#logger);
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
