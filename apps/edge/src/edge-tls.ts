// How an edge speaks TLS: the certificates it has, the terms that all its ports share, and what changes with time: files that are renewed,
// certificates that come by themselves, a day that is over.
import type { SecureContextOptions } from 'node:tls';
import { CertificateFiles, type CertificatePair, type TicketScope, type TlsFiles, TlsTerms } from '@tunnel/http-shell';
import { type Clock, type Logger, randomToken, Secret, type ServerConfig } from '@tunnel/runtime';
import type { CertificateListener } from './backend/certificates/edge-certificates.ts';
import { CertificateStore } from './ingress/tls/certificate-store.ts';
import { EDGE_LIMITS } from './limits.ts';

export class EdgeTls implements CertificateListener {
  readonly certificates: CertificateStore;
  readonly #config: Pick<ServerConfig, 'tls' | 'server' | 'acme'>;
  readonly #files: CertificateFiles;
  /** Tickets are of this run: no other takes them. */
  readonly #terms: TlsTerms;
  readonly #onRenewed: () => void;
  /** Of certificates that came by themselves: the names of each, and which of them a name shows. */
  readonly #namesOf = new Map<string, readonly string[]>();
  readonly #shownAt = new Map<string, string>();

  /** `onRenewed`: for handshakes from now on, every port asks for its options again. */
  constructor(
    config: Pick<ServerConfig, 'tls' | 'server' | 'acme'>,
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
    onRenewed: () => void,
  ) {
    this.#config = config;
    this.#onRenewed = onRenewed;
    this.#terms = new TlsTerms(new Secret(randomToken()), clock);
    this.certificates = new CertificateStore({ terms: this.#terms, clock, domain: config.server.domain });
    this.#files = new CertificateFiles({
      paths: config.tls,
      lookEveryMs: EDGE_LIMITS.TLS_FILES_LOOK_MS,
      clock,
      logger,
      onRenewed: (files) => {
        this.certificates.setForAll(files);
        onRenewed();
      },
    });
  }

  /** null: none are named. */
  get files(): TlsFiles | null {
    return this.#files.current;
  }

  /** Whether the https port is open: also before its first certificate is there. */
  get hasHttpsPort(): boolean {
    return this.hasSecurePorts || this.#config.tls.local_ca;
  }

  /** Whether clients, and whoever uses the REST from elsewhere, must speak TLS. Those of a local authority are for visitors alone. */
  get hasSecurePorts(): boolean {
    return this.files !== null || this.#config.acme.enabled;
  }

  /** Of a port with one certificate; null: it speaks in clear. Without one yet it refuses every handshake, and is never in clear meanwhile. */
  optionsOf(scope: TicketScope): SecureContextOptions | null {
    return this.hasSecurePorts ? this.#terms.optionsOf(this.#ofDomain ?? this.files, scope) : null;
  }

  get #ofDomain(): CertificatePair | null {
    return this.certificates.ownOf(this.#config.server.domain)?.pair ?? null;
  }

  // ---- certificates that come by themselves ----

  onPair(id: string, names: readonly string[], pair: CertificatePair): string | null {
    const before = this.#ofDomain;
    const problem = this.certificates.set(names, pair);
    if (problem !== null) return problem;
    this.#hide(id, (name) => !names.includes(name));
    this.#namesOf.set(id, names);
    for (const name of names) this.#shownAt.set(name, id);
    if (before !== this.#ofDomain) this.#onRenewed();
    return null;
  }

  onGone(id: string): void {
    const before = this.#ofDomain;
    this.#hide(id, () => true);
    this.#namesOf.delete(id);
    if (before !== this.#ofDomain) this.#onRenewed();
  }

  /** A name that another certificate has by now stays. */
  #hide(id: string, isHidden: (name: string) => boolean): void {
    const hidden = (this.#namesOf.get(id) ?? []).filter((name) => this.#shownAt.get(name) === id && isHidden(name));
    for (const name of hidden) this.#shownAt.delete(name);
    this.certificates.remove(hidden);
  }

  // ---- life ----

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
