// HTTPS on the platform's own port: finds the certificate to serve, checks regularly for a renewed certificate, and answers the challenge
// of a certificate authority that validates the host.
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

/** Interval for checking whether the certificate of the platform's own port has been renewed. */
const OWN_CERTIFICATE_LOOK_MS = 2000;
/** Interval for checking whether the daily change of the TLS session ticket key is due. */
const TLS_PORT_TICKETS_LOOK_MS = 60_000;

export interface PlatformTlsOptions {
  readonly publicUrl: string;
  readonly files: ServerConfig['tls'];
  readonly db: Db;
  /** Returns the access to ordered certificates. Null if the platform orders no certificates, or cannot read them yet. */
  readonly certificates: () => KeptCertificates | null;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with new TLS options for future handshakes. */
  readonly onRenewed: (options: SecureContextOptions) => void;
}

export class PlatformTls {
  readonly #options: PlatformTlsOptions;
  readonly #host: string;
  /** TLS session tickets with a random secret: a ticket is valid only during this run of the process. */
  readonly #terms: TlsTerms;
  readonly #files: CertificateFiles;
  readonly #challenges = new TokenBucket(CHALLENGES);
  #issued: CertificatePair | null = null;
  /** Id and serial number of the certificate in use, or of a newer certificate that was found unusable. */
  #seen = '';
  #problem = '';
  readonly #looks = new SingleFlight(() => this.#look().catch((error: unknown) => this.#failed(error)));
  #timer: Timer | undefined;
  /** TLS context for the current challenge, reused because a certificate authority connects from several places. */
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

  /** Loads the certificate files before the port opens. Rejects with a fault that names the file. */
  async start(): Promise<void> {
    await this.#files.start();
    this.#show();
    this.#terms.start(TLS_PORT_TICKETS_LOOK_MS, () => this.#show());
    if (this.#shown === null) {
      this.#options.logger.info({ host: this.#host }, 'the port opens as soon as the first certificate is issued');
    }
  }

  /** Starts checking the database for issued certificates. Called once the tables exist. */
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

  /** Returns the TLS context that answers a certificate authority's tls-alpn-01 challenge. Null if no challenge is pending for the host. */
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

  /** The certificate to serve. An issued certificate takes precedence over the files, which are the fallback. */
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

  /** Logs a failure once per reason, because the check is retried every few seconds. An unavailable database is logged elsewhere. */
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
