// Certificate management of a platform: passes the required certificates to the store, runs the keeper that orders and renews, and gives
// access to the certificates for responses to edges.
import type {
  CertificateStore,
  ChallengeKey,
  ManagedCertificates,
  OrderResult,
  SealedKeys,
} from '@tunnel/certificates/acme';
import type { ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { type Clock, type Logger, SingleFlight, type Timer } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import { DatabaseAway } from '../../db/database-away.ts';
import { DatabaseClock } from '../../db/database-clock.ts';
import { changeRange } from '../shared/edge-changes.ts';
import { findChallengeTarget, isPassedThrough, operatorsFacts } from './certificate-facts.ts';
import { noteCertificate } from './certificate-notices.ts';
import { PostgresCertificateStore } from './postgres-certificate-store.ts';
import { reconcileCertificates } from './reconcile-certificates.ts';

/**
 * Interval at which the platform checks for changes of the required certificates. A change made by the same process is checked
 * immediately.
 */
export const CERTIFICATES_EVERY_MS = 5000;
/** Maximum time that the first order waits until the edge of the same stack has opened its ports. */
export const CERTIFICATES_EDGE_WAIT_MS = 60_000;
/** Interval at which the platform checks whether the edge of the same stack has opened its ports. */
export const CERTIFICATES_EDGE_LOOK_MS = 200;
/**
 * Interval at which the required certificates are determined even without an announced change. Some changes are not announced, such as a
 * deleted account, an expired wildcard or a changed clock.
 */
export const CERTIFICATES_ANYWAY_MS = 60_000;

export interface PlatformCertificatesOptions {
  readonly config: ServerConfig;
  readonly db: Db;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly wakeMailer: () => void;
  /**
   * Returns true if the edge of the same stack has opened its ports, which the certificate authority connects to. Absent if there is no
   * such edge.
   */
  readonly isEdgeOpen?: () => boolean;
}

/** Store and keys from which requests of edges are answered, while the platform orders certificates. */
export interface OpenCertificates {
  readonly store: Pick<CertificateStore, 'findChallenge'>;
  readonly keys: SealedKeys;
}

export class PlatformCertificates {
  readonly #options: PlatformCertificatesOptions;
  readonly #clock: DatabaseClock;
  readonly #store: PostgresCertificateStore;
  readonly #results: Record<OrderResult, number> = { issued: 0, failed: 0, rate_limited: 0 };
  #managed: ManagedCertificates | undefined;
  #starting: Promise<void> | undefined;
  #timer: Timer | undefined;
  readonly #passes = new SingleFlight(() => this.#run());
  #isWanted = true;
  #hasBegun = false;
  #isStopped = false;
  #seen = { change: -1, at: Number.NEGATIVE_INFINITY };

  constructor(options: PlatformCertificatesOptions) {
    const { db, clock, config, wakeMailer } = options;
    this.#options = options;
    this.#clock = new DatabaseClock(db, clock);
    this.#store = new PostgresCertificateStore({
      db,
      directory: config.acme.directory,
      onSaved: async (trx, before, after) => {
        const settings = { publicUrl: config.platform.public_url, now: this.#clock.now() };
        // The mailer is woken after the commit, because the mail is not visible earlier.
        if (await noteCertificate(trx, before, after, settings)) clock.setTimeout(wakeMailer, 0);
      },
    });
  }

  /** Store and keys for edges. Null if `[acme]` is off, or if an unusable file prevents ordering. */
  get kept(): OpenCertificates | null {
    if (this.#managed === undefined) return null;
    // The expiry time of a challenge was set with the database's clock, so the lookup uses the same clock.
    const findChallenge = (key: ChallengeKey) => this.#store.findChallenge(key, this.#clock.now());
    return { store: { findChallenge }, keys: this.#managed.keys };
  }

  /** Address of the built-in DNS responder, or null without a responder. */
  get dnsAddress(): string | null {
    return this.#managed?.responder?.addresses[0] ?? null;
  }

  /** Current time of the database's clock, which all certificate times refer to. */
  now(): number {
    return this.#clock.now();
  }

  /** Number of orders since the start, by result. */
  get results(): Readonly<Record<OrderResult, number>> {
    return this.#results;
  }

  /** Promise that resolves when the start of the certificate management has succeeded or failed. */
  get begun(): Promise<void> {
    return this.#starting ?? Promise.resolve();
  }

  /**
   * Starts the certificate management; the database tables must exist. Errors are logged, and the platform continues without ordering
   * certificates.
   */
  start(): void {
    if (this.#options.config.acme.enabled) this.#starting ??= this.#start().catch((error) => this.#failed(error));
  }

  /** Starts a check of the required certificates. Called after the commit of a change that may affect them. */
  wanted(): void {
    this.#isWanted = true;
    if (!this.#hasBegun || this.#isStopped) return;
    void this.#passes.run();
  }

  /** Renews a certificate now, regardless of earlier failures. Returns false if an order is in progress or the certificate is unknown. */
  async renew(id: string): Promise<boolean> {
    return (await this.#managed?.renew(id)) ?? false;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#starting;
    this.#timer?.cancel();
    await this.#passes.current;
    await this.#managed?.stop();
  }

  async #start(): Promise<void> {
    const { config, db, dataDir, logger, clock } = this.#options;
    const { directory } = config.acme;
    await this.#clock.compare();
    await db
      .insertInto('acme_authority')
      .values({ directory })
      .onConflict((conflict) => conflict.column('only_one').doUpdateSet({ directory }))
      .execute();
    // The ACME module is loaded only on a platform with automatic certificates.
    const { ManagedCertificates: Managed } = await import('@tunnel/certificates/acme');
    const { domain, host } = config.server;
    const managed = new Managed({
      acme: config.acme,
      dns: config.dns,
      domain,
      host,
      dataDir,
      store: this.#store,
      logger,
      clock: this.#clock,
      random: Math.random,
      challengeTargetOf: (name) => findChallengeTarget(db, name, domain),
      isPassedThrough: (name) => isPassedThrough(db, name),
      listener: {
        onIssued: () => this.wanted(),
        onOrder: (result) => {
          this.#results[result] += 1;
        },
        onEnding: () => {},
      },
    });
    await managed.start();
    this.#managed = managed;
    if (this.#isStopped) return;
    this.#begin(clock.monotonic() + CERTIFICATES_EDGE_WAIT_MS);
  }

  /**
   * Starts ordering when the edge has opened its ports. If the authority connected earlier, the order would fail, and the next attempt
   * would be a minute later.
   */
  #begin(latestAt: number): void {
    const { clock, isEdgeOpen } = this.#options;
    if (this.#isStopped) return;
    if (isEdgeOpen?.() === false && clock.monotonic() < latestAt) {
      this.#timer = clock.setTimeout(() => this.#begin(latestAt), CERTIFICATES_EDGE_LOOK_MS);
      return;
    }
    this.#hasBegun = true;
    this.#timer = clock.setInterval(() => void this.#look(), CERTIFICATES_EVERY_MS);
    this.wanted();
  }

  #failed(error: unknown): void {
    const { logger, clock } = this.#options;
    if (error instanceof Fault) {
      // Unusable file: the operator has to fix the file and restart the platform.
      logger.error({ reason: error.message, next: error.next }, 'certificates are not being ordered');
      return;
    }
    logger.warn({ reason: String(error) }, 'certificates are waiting for the database');
    this.#starting = undefined;
    if (!this.#isStopped) this.#timer = clock.setTimeout(() => this.start(), CERTIFICATES_EVERY_MS);
  }

  /**
   * Determines the required certificates again if a change was announced to edges, or if CERTIFICATES_ANYWAY_MS have passed, because some
   * reasons are never announced.
   */
  async #look(): Promise<void> {
    const now = this.#options.clock.monotonic();
    const isLate = now - this.#seen.at >= CERTIFICATES_ANYWAY_MS;
    const latest = await changeRange(this.#options.db).then(
      (range) => range.latest,
      () => this.#seen.change,
    );
    if (isLate || latest !== this.#seen.change) this.wanted();
  }

  async #run(): Promise<void> {
    const { config, db, logger, clock } = this.#options;
    while (this.#isWanted && !this.#isStopped && this.#managed !== undefined) {
      this.#isWanted = false;
      try {
        const { latest: change } = await changeRange(db);
        const at = clock.monotonic();
        if (at - this.#seen.at >= CERTIFICATES_ANYWAY_MS) await this.#clock.compare();
        const facts = { ...operatorsFacts(config), canWildcard: this.#managed.canWildcard };
        const { directory } = config.acme;
        const options = { db, directory, store: this.#store, facts, now: this.#clock.now(), logger };
        if (await reconcileCertificates(options)) this.#managed.wake();
        this.#seen = { change, at };
      } catch (error) {
        // A failed pass is not retried here: the timer starts the next pass.
        if (error instanceof DatabaseAway) logger.debug({}, 'certificates are waiting for the database');
        else logger.error({ err: error }, 'cannot determine the required certificates');
      }
    }
  }
}
