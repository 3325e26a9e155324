// How an edge speaks TLS: the certificates it has, the terms that all its ports share, and what changes with time: files that are renewed,
// certificates that come by themselves, a day that is over.
import { join } from 'node:path';
import type { SecureContextOptions } from 'node:tls';
import type { LocalAuthority } from '@tunnel/certificates/acme';
import { type ServerConfig } from '@tunnel/config/server';
import { CertificateFiles, type CertificatePair, type TicketScope, type TlsFiles, TlsTerms } from '@tunnel/http-shell';
import { type Clock, type Logger, randomToken, Secret } from '@tunnel/runtime';
import type { CertificateListener } from './backend/certificates/edge-certificates.ts';
import { CertificateStore, TLS_MADE_KEPT_MS } from './ingress/tls/certificate-store.ts';

/** how often the edge looks whether its certificate has been renewed */
const TLS_FILES_LOOK_MS = 2000;
/** How often the edge checks whether the key for TLS session tickets is due for its daily change. */
const TLS_TICKETS_LOOK_MS = 60_000;

interface EdgeTlsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where the local authority is kept. */
  readonly dataDir?: string | undefined;
}

/** An authority of this machine, and its certificate for the machine itself. */
interface LocalTls {
  readonly authority: LocalAuthority;
  readonly pair: CertificatePair;
  readonly madeAt: number;
}

const LOCALHOST = 'localhost';

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
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #dataDir: string | undefined;
  /** Of `local_ca`: what is shown for the machine itself. */
  #local: LocalTls | null = null;

  /** `onRenewed`: for handshakes from now on, every port asks for its options again. */
  constructor(
    config: Pick<ServerConfig, 'tls' | 'server' | 'acme'>,
    { clock, logger, dataDir }: EdgeTlsOptions,
    onRenewed: () => void,
  ) {
    this.#config = config;
    this.#clock = clock;
    this.#logger = logger;
    this.#dataDir = dataDir;
    this.#onRenewed = onRenewed;
    this.#terms = new TlsTerms(new Secret(randomToken()), clock);
    this.certificates = new CertificateStore({ terms: this.#terms, clock, domain: config.server.domain });
    this.#files = new CertificateFiles({
      paths: config.tls,
      lookEveryMs: TLS_FILES_LOOK_MS,
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

  /** Of the local authority; null: there is none. */
  get localPair(): CertificatePair | null {
    return this.#local?.pair ?? null;
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

  onPair(id: string, names: readonly string[], pair: CertificatePair, isTried = false): string | null {
    const before = this.#ofDomain;
    const problem = this.certificates.set(names, pair, isTried);
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
    if (this.#config.tls.local_ca) await this.#openLocal();
    this.#terms.start(TLS_TICKETS_LOOK_MS, () => {
      this.certificates.renewTickets();
      this.#renewLocal().catch((error: unknown) => {
        this.#logger.error(
          { err: error },
          'cannot renew the certificate for localhost; the previous certificate stays in use',
        );
      });
      this.#onRenewed();
    });
  }

  /** The one for the machine itself is there before anybody comes: who names nobody is shown it. */
  async #openLocal(): Promise<void> {
    if (this.#dataDir === undefined) throw new Error('a local certificate authority needs a folder');
    const acme = await import('@tunnel/certificates/acme');
    const authority = await acme.LocalAuthority.open(join(this.#dataDir, 'local-ca'), this.#clock);
    await this.#issueLocal(authority);
    this.certificates.setMaker({
      covers: (host) => host.endsWith(`.${LOCALHOST}`),
      issue: (host) => authority.issue(host),
    });
  }

  async #issueLocal(authority: LocalAuthority): Promise<void> {
    const pair = await authority.issue(LOCALHOST);
    this.certificates.set([LOCALHOST], pair);
    this.#local = { authority, pair, madeAt: this.#clock.now() };
  }

  async #renewLocal(): Promise<void> {
    const local = this.#local;
    if (local === null || this.#clock.now() - local.madeAt < TLS_MADE_KEPT_MS) return;
    await this.#issueLocal(local.authority);
    this.#onRenewed();
  }

  stop(): void {
    this.#files.stop();
    this.#terms.stop();
    this.certificates.stop();
  }
}
