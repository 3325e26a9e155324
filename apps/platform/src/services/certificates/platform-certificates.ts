// Certificates of a platform: what is wanted is brought to the store, the keeper orders and renews, and whoever answers edges finds both here.
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

/** How often the platform checks whether other certificates are wanted. A change in this process is checked at once. */
export const CERTIFICATES_EVERY_MS = 5000;
/** How long the first order waits for the edge of the same stack to open its ports. */
export const CERTIFICATES_EDGE_WAIT_MS = 60_000;
/** How often is looked whether it has. */
export const CERTIFICATES_EDGE_LOOK_MS = 200;
/** And whatever is announced: an account was deleted, a wildcard has ended, a clock was set. */
export const CERTIFICATES_ANYWAY_MS = 60_000;

export interface PlatformCertificatesOptions {
  readonly config: ServerConfig;
  readonly db: Db;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly wakeMailer: () => void;
  /** Whether the edge of the same stack has its ports open, by which an authority looks; absent: there is no such edge to wait for. */
  readonly isEdgeOpen?: () => boolean;
}

/** What edges are answered from, while certificates are ordered here. */
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
        // Looked for a moment later, when it is committed.
        if (await noteCertificate(trx, before, after, settings)) clock.setTimeout(wakeMailer, 0);
      },
    });
  }

  /** null: `[acme]` is off, or nothing can be ordered because of a file. */
  get kept(): OpenCertificates | null {
    if (this.#managed === undefined) return null;
    // Until when an answer stands was said by the database's clock.
    const findChallenge = (key: ChallengeKey) => this.#store.findChallenge(key, this.#clock.now());
    return { store: { findChallenge }, keys: this.#managed.keys };
  }

  /** Where the DNS responder is asked; null: there is none. */
  get dnsAddress(): string | null {
    return this.#managed?.responder?.addresses[0] ?? null;
  }

  /** The time by which certificates live: the database's. */
  now(): number {
    return this.#clock.now();
  }

  /** Orders since the start, by their end. */
  get results(): Readonly<Record<OrderResult, number>> {
    return this.#results;
  }

  /** Settles when what was begun runs, or could not. */
  get begun(): Promise<void> {
    return this.#starting ?? Promise.resolve();
  }

  /** With the tables there. What goes wrong is told, and the platform goes on without ordering. */
  start(): void {
    if (this.#options.config.acme.enabled) this.#starting ??= this.#start().catch((error) => this.#failed(error));
  }

  /** What is wanted may have changed. Called after the commit. */
  wanted(): void {
    this.#isWanted = true;
    if (!this.#hasBegun || this.#isStopped) return;
    void this.#passes.run();
  }

  /** Now, whatever failed before; false: somebody works on it already, or nobody knows it. */
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
    // Loaded where it is used alone.
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

  /** An authority that comes before the edge's ports are open finds nobody there, and the next try is a minute later. */
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
      // A file that cannot be used: whoever corrects it starts again.
      logger.error({ reason: error.message, next: error.next }, 'certificates are not being ordered');
      return;
    }
    logger.warn({ reason: String(error) }, 'certificates are waiting for the database');
    this.#starting = undefined;
    if (!this.#isStopped) this.#timer = clock.setTimeout(() => this.start(), CERTIFICATES_EVERY_MS);
  }

  /** What wants a certificate is announced to edges as well: without news there is nothing to do, but for what nobody announces. */
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
        // The next look comes by itself.
        if (error instanceof DatabaseAway) logger.debug({}, 'certificates are waiting for the database');
        else logger.error({ err: error }, 'cannot determine the required certificates');
      }
    }
  }
}
