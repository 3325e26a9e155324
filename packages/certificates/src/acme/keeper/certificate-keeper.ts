// Keeps every wanted certificate valid: claims due certificates, executes the effects of the state machine, and saves every step before the
// next.

import { Fault } from '@tunnel/errors';
import { type Clock, type Logger, randomToken, SingleFlight, type Timer } from '@tunnel/runtime';
import { type CertificateEvent, type OrderFailure, transitionCertificate } from '../../life/certificate-life.rules.ts';
import { type AccountOptions, type AcmeClient, isUnknownAccount } from '../client/acme-client.ts';
import { AcmeProblem } from '../client/acme-problem.ts';
import { newCertificateKey } from '../client/issued-certificate.ts';
import { AuthorityAccount } from './authority-account.ts';
import type { CertificateRecord, CertificateStore, Claim, RecordChanges } from './certificate-store.ts';
import type { ChallengeSolver } from './challenge-solver.ts';
import { finishOrder } from './finish-order.ts';
import type { SealedKeys } from './sealed-keys.ts';

/** Maximum concurrent certificate orders per process. */
const ORDERS_AT_ONCE = 4;
/** Interval between checks for due work. Requests in this process start a check at once. */
export const LOOK_EVERY_MS = 5000;
/** Interval between renewal information requests after a start, so that thousands of certificates do not cause a flood. */
const INFO_AT_START_EVERY_MS = 100;
/** Time for which a keeper claims a certificate. After expiry another keeper can take over. */
export const LEASE_MS = 60_000;
/** Interval at which a keeper renews its claim to a certificate. */
export const LEASE_RENEW_MS = 20_000;
/** Pause of the keeper after a failure of the certificate store or key file. */
const PAUSE_MS = 60_000;
/** Time that a stop waits for running orders. They continue after the next start. */
const STOP_WAIT_MS = 5000;
/**
 * Maximum new orders within CERTIFICATE_ORDERS_WINDOW_MS. Let's Encrypt allows 300.
 * @limit operator: Certificate orders of the server within 3 h | further orders wait
 */
const CERTIFICATE_ORDERS_MAX = 250;
/** Time window in which new certificate orders are counted. */
const CERTIFICATE_ORDERS_WINDOW_MS = 3 * 3_600_000;
/**
 * Maximum orders per account within the window: a quarter. The operator's names are not counted.
 * @limit accounts: Certificate orders per account within 3 h | the order waits
 */
const CERTIFICATE_ORDERS_PER_ACCOUNT = 62;

export type OrderResult = 'issued' | 'failed' | 'rate_limited';

export interface KeeperListener {
  onIssued(record: CertificateRecord): void;
  onOrder(result: OrderResult, record: CertificateRecord): void;
  /** Less than a tenth of the lifetime is left and renewals fail. Called once per day. */
  onEnding(record: CertificateRecord, endsAt: number): void;
}

export interface KeeperOptions extends AccountOptions {
  readonly client: AcmeClient;
  readonly store: CertificateStore;
  readonly keys: SealedKeys;
  /** Solvers that respond to ACME challenges, preferred first. */
  readonly solvers: readonly ChallengeSolver[];
  readonly profile?: string | undefined;
  /**
   * Returns false if this keeper cannot answer dns-01 challenges; another keeper of the store may be able to order wildcards. Default:
   * true.
   */
  readonly canTakeWildcards?: () => boolean;
  readonly clock: Clock;
  /** Random source. Returns a number in [0, 1). */
  readonly random: () => number;
  readonly logger: Logger;
  readonly listener: KeeperListener;
}

/** Error that ends work on a certificate: another keeper has taken it over, or this keeper is stopped. */
class LeaseLost extends Error {}

const ORDERS = {
  max: CERTIFICATE_ORDERS_MAX,
  windowMs: CERTIFICATE_ORDERS_WINDOW_MS,
  perAccount: CERTIFICATE_ORDERS_PER_ACCOUNT,
};

export class CertificateKeeper {
  readonly #options: KeeperOptions;
  readonly #account: AuthorityAccount;
  readonly #owner = randomToken(9);
  /** Orders in progress, with the account of the certificate; null for the operator's certificates. */
  readonly #running = new Map<Promise<void>, string | null>();
  readonly #stopped = new AbortController();
  #timer: Timer | undefined;
  readonly #looks = new SingleFlight(() => this.#look());
  #lookAgain = false;
  #pausedUntil = 0;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#account = new AuthorityAccount(options);
  }

  start(): void {
    this.#timer = this.#options.clock.setInterval(() => this.wake(), LOOK_EVERY_MS);
    // After a long downtime, renewal information may be outdated. If the store does not respond, the first check tries again.
    const { store, clock } = this.#options;
    void store
      .wantInfo(clock.now(), INFO_AT_START_EVERY_MS)
      .catch(() => {})
      .finally(() => this.wake());
  }

  /** Checks for due certificates and starts their orders. */
  wake(): void {
    this.#lookAgain = true;
    void this.#looks.run();
  }

  /** Renews now, regardless of earlier failures. Returns false if the certificate is unknown or already being processed. */
  async renew(id: string): Promise<boolean> {
    const { store, clock, random } = this.#options;
    const now = clock.now();
    const done = await store.change(
      id,
      now,
      (life) => transitionCertificate(life, { kind: 'renewal-asked' }, now, random())[0],
    );
    this.wake();
    return done;
  }

  /** Stops the keeper. Running orders continue after the next start. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#stopped.abort(new LeaseLost());
    let timer: Timer | undefined;
    const late = new Promise<void>((resolve) => {
      timer = this.#options.clock.setTimeout(resolve, STOP_WAIT_MS);
    });
    await Promise.race([Promise.allSettled([this.#looks.current, ...this.#running.keys()]), late]);
    timer?.cancel();
  }

  async #look(): Promise<void> {
    const { store, clock, logger, canTakeWildcards } = this.#options;
    try {
      while (this.#lookAgain && !this.#stopped.signal.aborted && clock.monotonic() >= this.#pausedUntil) {
        this.#lookAgain = false;
        while (!this.#stopped.signal.aborted && this.#running.size < ORDERS_AT_ONCE) {
          const wildcards = canTakeWildcards?.() ?? true;
          const busyAccounts = [...this.#running.values()].filter((account) => account !== null);
          const takes = { wildcards, busyAccounts };
          const claim = await store.claim(this.#owner, clock.now(), LEASE_MS, takes);
          if (claim === null) break;
          const work = this.#work(claim).finally(() => {
            this.#running.delete(work);
            this.wake();
          });
          this.#running.set(work, claim.record.accountId);
        }
      }
    } catch (error) {
      this.#pause();
      logger.error({ err: error }, 'certificate store does not respond; retrying in a minute');
    }
  }

  #pause(): void {
    this.#pausedUntil = this.#options.clock.monotonic() + PAUSE_MS;
  }

  async #work(claim: Claim): Promise<void> {
    const { store, clock, logger } = this.#options;
    const lost = new AbortController();
    const signal = AbortSignal.any([lost.signal, this.#stopped.signal]);
    const timer = clock.setInterval(() => {
      // A short failure of the store is harmless: if the lease expires, the epoch decides.
      store.extend(claim, clock.now(), LEASE_MS).then(
        (held) => held || lost.abort(new LeaseLost()),
        () => {},
      );
    }, LEASE_RENEW_MS);
    const { names } = claim.record;
    try {
      if (this.#stopped.signal.aborted) return;
      await new ClaimedCertificate(claim, this.#options, this.#account, signal).run();
    } catch (error) {
      if (error instanceof LeaseLost || signal.aborted) {
        logger.debug({ names }, 'another platform works on the certificate');
      } else {
        // An error here is usually a wrong key file. After the file is corrected, all orders continue where they stopped.
        this.#pause();
        logger.error({ names, reason: messageOf(error) }, 'cannot order certificates; retrying in a minute');
      }
    } finally {
      timer.cancel();
      await store.release(claim).catch(() => {});
    }
  }
}

/** Work on a certificate for which this keeper holds the lease. */
class ClaimedCertificate {
  readonly #claim: Claim;
  readonly #options: KeeperOptions;
  readonly #account: AuthorityAccount;
  readonly #signal: AbortSignal;
  #record: CertificateRecord;

  constructor(claim: Claim, options: KeeperOptions, account: AuthorityAccount, signal: AbortSignal) {
    this.#claim = claim;
    this.#record = claim.record;
    this.#options = options;
    this.#account = account;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    const { listener, logger } = this.#options;
    for (const effect of await this.#feed({ kind: 'time-passed' })) {
      if (effect.kind === 'warn') {
        const { names, life } = this.#record;
        const until = new Date(effect.endsAt).toISOString();
        logger.error({ names, until, reason: life.lastError }, 'certificate expires soon and cannot be renewed');
        listener.onEnding(this.#record, effect.endsAt);
      } else if (effect.kind === 'ask-renewal-info') await this.#askRenewalInfo();
      else if (effect.kind === 'resume-order') await this.#attempt(() => this.#resume(effect.url));
      else if (await this.#hasRoom(effect.replaces)) await this.#attempt(() => this.#begin(effect.replaces));
    }
  }

  async #feed(event: CertificateEvent, changes: RecordChanges = {}) {
    const { store, clock, random } = this.#options;
    const [life, effects] = transitionCertificate(this.#record.life, event, clock.now(), random());
    const next = { ...changes, life };
    if (this.#signal.aborted || !(await store.save(this.#claim, next))) throw new LeaseLost();
    this.#record = { ...this.#record, ...next };
    return effects;
  }

  /** A renewal that names the replaced certificate does not count, as at the authority. */
  async #hasRoom(replaces: boolean): Promise<boolean> {
    if (replaces && this.#record.certificate?.renewalId != null) return true;
    const { store, clock, logger } = this.#options;
    const { names, accountId } = this.#record;
    const answer = await store.takeFromBudget('orders', ORDERS, clock.now(), accountId);
    if (answer.kind === 'taken') return true;
    const max = answer.isWhole ? ORDERS.max : ORDERS.perAccount;
    const whose = answer.isWhole ? 'all accounts' : 'its account';
    logger.warn({ names, max }, `too many orders of ${whose} within three hours; the order waits`);
    await this.#feed({ kind: 'held-back', until: answer.until });
    return false;
  }

  async #begin(replaces: boolean): Promise<void> {
    const { keys, profile } = this.#options;
    const { names, certificate } = this.#record;
    const account = await this.#account.open();
    const key = await newCertificateKey();
    const sealed = await keys.seal(key);
    const replaced = replaces ? (certificate?.renewalId ?? undefined) : undefined;
    const order = await account.newOrder(names, { profile, replaces: replaced }, { signal: this.#signal });
    const { url, expiresAt } = order;
    await this.#feed({ kind: 'order-begun', url, expiresAt }, { orderKey: sealed });
    await this.#finish(url, sealed, key);
  }

  async #resume(url: string): Promise<void> {
    const { orderKey, names } = this.#record;
    if (orderKey === null)
      throw new Fault('ACME_REFUSED', { what: names.join(', '), detail: 'the key of the order was not stored' });
    await this.#finish(url, orderKey, await this.#options.keys.open(orderKey));
  }

  async #finish(url: string, sealed: string, key: string): Promise<void> {
    const { solvers, clock, listener, logger } = this.#options;
    const { names, life } = this.#record;
    const account = await this.#account.open();
    const plan = { account, names, key, solvers, refusals: life.refusals, clock, signal: this.#signal };
    const issued = await finishOrder(plan, url);
    const { notBefore, notAfter, issuer, serial } = issued;
    const certificate = { ...issued, key: sealed };
    await this.#feed({ kind: 'issued', notBefore, notAfter }, { certificate, orderKey: null });
    logger.info({ names, issuer, serial, until: new Date(notAfter).toISOString() }, 'certificate issued');
    listener.onOrder('issued', this.#record);
    listener.onIssued(this.#record);
  }

  async #attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      // After an abort or a problem with the key file, the certificate order is still valid.
      if (this.#signal.aborted || error instanceof LeaseLost) throw error;
      if (error instanceof Fault && error.code === 'CERTIFICATE_KEY_FILE') throw error;
      if (isUnknownAccount(error)) await this.#account.isUnknown();
      const { listener, logger } = this.#options;
      const failure = failureOf(error, this.#record.names);
      await this.#feed({ kind: 'order-failed', ...failure });
      if (failure.why === 'already-replaced') return;
      listener.onOrder(failure.why === 'rate-limited' ? 'rate_limited' : 'failed', this.#record);
      const { names, life } = this.#record;
      const again = new Date(life.tryAt).toISOString();
      logger.warn({ names, reason: failure.reason, again }, 'certificate not issued');
    }
  }

  async #askRenewalInfo(): Promise<void> {
    const renewalId = this.#record.certificate?.renewalId ?? null;
    const { client } = this.#options;
    const info =
      renewalId === null ? NO_INFO : await client.renewalInfo(renewalId, { signal: this.#signal }).catch(noInfo);
    await this.#feed({ kind: 'renewal-info', ...info });
  }
}

const NO_INFO = { window: null, retryAfterMs: null };

/** If the authority gives no renewal information, it is asked again later; until then the certificate's lifetime decides. */
const noInfo = (error: unknown) => ({
  window: null,
  retryAfterMs: error instanceof AcmeProblem ? error.retryAfterMs : null,
});

interface Failure {
  readonly why: OrderFailure;
  readonly reason: string;
  readonly retryAfterMs: number | null;
}

/** Faults of an order after which the same order can still succeed. */
const PASSING = new Set(['ACME_AWAY', 'ACME_ORDER_SLOW', 'ACME_CHALLENGE_UNSET', 'ACME_BAD_ANSWER']);

const failureOf = (error: unknown, names: readonly string[]): Failure => {
  if (!(error instanceof AcmeProblem)) {
    const isPassing = error instanceof Fault && PASSING.has(error.code);
    return { why: isPassing ? 'away' : 'refused', reason: messageOf(error), retryAfterMs: null };
  }
  const { retryAfterMs, detail, status } = error;
  const what = names.join(', ');
  if (error.isRateLimit) {
    return { why: 'rate-limited', reason: new Fault('ACME_RATE_LIMITED', { detail }).message, retryAfterMs };
  }
  const reason = new Fault('ACME_REFUSED', { what, detail: error.message }).message;
  if (error.type === 'alreadyReplaced') return { why: 'already-replaced', reason, retryAfterMs: null };
  if (error.isAway) return { why: 'away', reason, retryAfterMs };
  return { why: status === 404 || isUnknownAccount(error) ? 'gone' : 'refused', reason, retryAfterMs };
};

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
