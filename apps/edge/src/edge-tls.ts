// How an edge speaks TLS: the certificates it has, the terms that all its ports share, and what changes with time: files that are renewed, a day that is over.
import type { SecureContextOptions } from 'node:tls';
import { CertificateFiles, type TicketScope, type TlsFiles, TlsTerms } from '@tunnel/http-shell';
import { type Clock, type Logger, randomToken, Secret, type ServerConfig } from '@tunnel/runtime';
import { CertificateStore } from './ingress/tls/certificate-store.ts';
import { EDGE_LIMITS } from './limits.ts';

export class EdgeTls {
  readonly certificates: CertificateStore;
  readonly #files: CertificateFiles;
  /** Tickets are of this run: no other takes them. */
  readonly #terms: TlsTerms;
  readonly #onRenewed: () => void;

  /** `onRenewed`: for handshakes from now on, every port asks for its options again. */
  constructor(
    { tls, server }: Pick<ServerConfig, 'tls' | 'server'>,
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
    onRenewed: () => void,
  ) {
    this.#onRenewed = onRenewed;
    this.#terms = new TlsTerms(new Secret(randomToken()), clock);
    this.certificates = new CertificateStore({ terms: this.#terms, clock, domain: server.domain });
    this.#files = new CertificateFiles({
      paths: tls,
      lookEveryMs: EDGE_LIMITS.TLS_FILES_LOOK_MS,
      clock,
      logger,
      onRenewed: (files) => {
        this.certificates.setForAll(files);
        onRenewed();
      },
    });
  }

  /** null: there is none, and the edge speaks in clear. */
  get files(): TlsFiles | null {
    return this.#files.current;
  }

  /** Of a port with one certificate; null: it speaks in clear. */
  optionsOf(scope: TicketScope): SecureContextOptions | null {
    return this.files === null ? null : this.#terms.optionsOf(this.files, scope);
  }

  /** Rejects with a fault that names the file. */
  async start(): Promise<void> {
    await this.#files.start();
    this.certificates.setForAll(this.files);
    this.#terms.start(EDGE_LIMITS.TLS_TICKETS_LOOK_MS, () => {
      this.certificates.renewTickets();
      this.#onRenewed();
    });
  }

  stop(): void {
    this.#files.stop();
    this.#terms.stop();
    this.certificates.stop();
  }
}
