// TLS of an edge: its certificates, the TLS settings shared by all ports, and all changes over time: renewed files, automatically issued
// certificates, and the daily change of the session ticket key.
import { join } from 'node:path';
import type { SecureContextOptions } from 'node:tls';
import type { LocalAuthority } from '@tunnel/certificates/acme';
import { type ServerConfig } from '@tunnel/config/server';
import { CertificateFiles, type CertificatePair, type TicketScope, type TlsFiles, TlsTerms } from '@tunnel/http-shell';
import { type Clock, type Logger, randomToken, Secret } from '@tunnel/runtime';
import type { CertificateListener } from './backend/certificates/edge-certificates.ts';
import { CertificateStore, TLS_MADE_KEPT_MS } from './ingress/tls/certificate-store.ts';

/** Interval at which the edge checks whether its certificate files were renewed. */
const TLS_FILES_LOOK_MS = 2000;
/** How often the edge checks whether the key for TLS session tickets is due for its daily change. */
const TLS_TICKETS_LOOK_MS = 60_000;

interface EdgeTlsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Folder in which the local certificate authority is stored. */
  readonly dataDir?: string | undefined;
}

/** Local certificate authority of this computer, and its certificate for `localhost`. */
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
  /**
   * TLS settings of all ports. The secret for session tickets is generated at each start, so tickets from earlier runs are not accepted.
   */
  readonly #terms: TlsTerms;
  readonly #onRenewed: () => void;
  /**
   * State of automatically issued certificates: the names of each certificate id, and in `#shownAt` the certificate id in use for each
   * name.
   */
  readonly #namesOf = new Map<string, readonly string[]>();
  readonly #shownAt = new Map<string, string>();
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #dataDir: string | undefined;
  /** Local authority and its `localhost` certificate. Null unless `[tls] local_ca` is on. */
  #local: LocalTls | null = null;

  /** `onRenewed` is called after a certificate change, so that every port fetches new TLS options for later handshakes. */
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

  /** Certificate files of `[tls]`. Null if no files are configured. */
  get files(): TlsFiles | null {
    return this.#files.current;
  }

  /** Certificate issued by the local authority for `localhost`. Null without a local authority. */
  get localPair(): CertificatePair | null {
    return this.#local?.pair ?? null;
  }

  /** Whether the HTTPS port is open. The port opens even before its first certificate exists. */
  get hasHttpsPort(): boolean {
    return this.hasSecurePorts || this.#config.tls.local_ca;
  }

  /** Whether clients and remote REST callers must use TLS. Certificates of the local authority are for visitors only. */
  get hasSecurePorts(): boolean {
    return this.files !== null || this.#config.acme.enabled;
  }

  /**
   * Returns the TLS options of a port with a single certificate. Returns null if the port is unencrypted. Before its first certificate
   * exists, a TLS port rejects every handshake and never falls back to unencrypted connections.
   */
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

  /** Removes the names of a certificate from the store. A name that uses a newer certificate by now stays. */
  #hide(id: string, isHidden: (name: string) => boolean): void {
    const hidden = (this.#namesOf.get(id) ?? []).filter((name) => this.#shownAt.get(name) === id && isHidden(name));
    for (const name of hidden) this.#shownAt.delete(name);
    this.certificates.remove(hidden);
  }

  // ---- life ----

  /** Loads the certificates. Rejects with a fault that names the unusable file. */
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

  /**
   * Opens the local authority and issues the `localhost` certificate before the first visitor, because visitors without SNI get that
   * certificate.
   */
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
