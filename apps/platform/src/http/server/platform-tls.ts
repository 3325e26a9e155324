// HTTPS on the platform's own port: which certificate it shows, looked for again and again, and what it shows an authority that validates its host.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { type ServerConfig } from '@tunnel/config/server';
import { CertificateFiles, type CertificatePair, secureOptionsOf, type TlsFiles, TlsTerms } from '@tunnel/http-shell';
import { TokenBucket } from '@tunnel/rules/rate';
import { type Clock, type Logger, randomToken, Secret, SingleFlight, type Timer } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import { DatabaseAway } from '../../db/database-away.ts';
import { CHALLENGES, type KeptCertificates } from '../../services/certificates/edge-certificates.ts';
import { bestFor, loadIssued, operatorsIssued } from '../../services/certificates/own-certificate.ts';

/** How often the platform looks whether its own certificate has been renewed, where it speaks TLS. */
const OWN_CERTIFICATE_LOOK_MS = 2000;
/** How often the platform checks whether the key for TLS session tickets is due for its daily change. */
const TLS_PORT_TICKETS_LOOK_MS = 60_000;

export interface PlatformTlsOptions {
  readonly publicUrl: string;
  readonly files: ServerConfig['tls'];
  readonly db: Db;
  /** null: nothing is ordered here, or nothing can be told yet. */
  readonly certificates: () => KeptCertificates | null;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For handshakes from now on. */
  readonly onRenewed: (options: SecureContextOptions) => void;
}

export class PlatformTls {
  readonly #options: PlatformTlsOptions;
  readonly #host: string;
  /** Tickets are of this run: no other takes them. */
  readonly #terms: TlsTerms;
  readonly #files: CertificateFiles;
  readonly #challenges = new TokenBucket(CHALLENGES);
  #issued: CertificatePair | null = null;
  /** Of what is shown, or what was found not to be fit. */
  #seen = '';
  #problem = '';
  readonly #looks = new SingleFlight(() => this.#look().catch((error: unknown) => this.#failed(error)));
  #timer: Timer | undefined;
  /** Of the challenge that is asked for now: an authority asks from several places. */
  #challenge: { readonly token: string; readonly context: SecureContext } | null = null;

  constructor(options: PlatformTlsOptions) {
    const { publicUrl, files, clock, logger } = options;
    this.#options = options;
    this.#host = new URL(publicUrl).hostname;
    this.#terms = new TlsTerms(new Secret(randomToken()), clock);
    this.#files = new CertificateFiles({
      paths: files,
      clock,
      logger,
      lookEveryMs: OWN_CERTIFICATE_LOOK_MS,
      onRenewed: () => this.#show(),
    });
  }

  /** Before the port opens. Rejects with a fault that names the file. */
  async start(): Promise<void> {
    await this.#files.start();
    this.#show();
    this.#terms.start(TLS_PORT_TICKETS_LOOK_MS, () => this.#show());
    if (this.#shown === null) {
      this.#options.logger.info({ host: this.#host }, 'the port opens as soon as the first certificate is issued');
    }
  }

  /** With the tables there. */
  watch(): void {
    this.#timer ??= this.#options.clock.setInterval(() => void this.look(), OWN_CERTIFICATE_LOOK_MS);
    void this.look();
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#files.stop();
    this.#terms.stop();
    await this.#looks.current;
  }

  look(): Promise<void> {
    return this.#looks.run();
  }

  /** What an authority is shown; null: nobody waits for it. */
  readonly challengeFor = async (host: string | null): Promise<SecureContext | null> => {
    try {
      return host === this.#host && this.#challenges.take(this.#options.clock.monotonic())
        ? await this.#challengeContext()
        : null;
    } catch (error) {
      this.#failed(error);
      return null;
    }
  };

  /** What was issued comes before the files, which are for names that have nothing better. */
  get #shown(): TlsFiles | null {
    return this.#issued ?? this.#files.current;
  }

  #show(): void {
    if (this.#shown !== null) this.#options.onRenewed(this.#terms.optionsOf(this.#shown, 'platform'));
  }

  async #look(): Promise<void> {
    const { db, certificates, logger } = this.#options;
    const kept = certificates();
    if (kept === null) return;
    const best = bestFor(await operatorsIssued(db), this.#host);
    const version = best === null ? '' : `${best.id} ${best.serial}`;
    if (best === null || version === this.#seen) return;
    const stored = await loadIssued(db, best.id);
    if (stored === null) return;
    const pair = { cert: Buffer.from(stored.chain), key: Buffer.from(await kept.keys.open(stored.key)) };
    this.#seen = version;
    if (!isPair(pair)) throw new Error('the private key does not match the certificate');
    this.#issued = pair;
    this.#problem = '';
    this.#show();
    logger.info({ host: this.#host, serial: stored.serial }, 'new connections use the certificate');
  }

  async #challengeContext(): Promise<SecureContext | null> {
    const { certificates, clock } = this.#options;
    const found = (await certificates()?.store.findChallenge({ tlsName: this.#host }, clock.now())) ?? null;
    if (found?.type !== 'tls-alpn-01') return null;
    if (this.#challenge?.token === found.token) return this.#challenge.context;
    const { challengeCertificate } = await import('@tunnel/certificates/acme');
    const { cert, key } = await challengeCertificate(found, clock.now());
    const context = createSecureContext(secureOptionsOf({ cert: Buffer.from(cert), key: Buffer.from(key) }));
    this.#challenge = { token: found.token, context };
    return context;
  }

  /** Once each: it is tried again every few seconds. A database that is away is told of elsewhere. */
  #failed(error: unknown): void {
    if (error instanceof DatabaseAway) return;
    const reason = error instanceof Error ? error.message : String(error);
    if (reason === this.#problem) return;
    this.#problem = reason;
    this.#options.logger.error({ reason }, 'cannot use the new certificate; the previous certificate stays in use');
  }
}

const isPair = ({ cert, key }: CertificatePair): boolean =>
  new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
