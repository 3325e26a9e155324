// All certificates of the edge by name: exact names, wildcards of a single label, and a default certificate for other names. A handshake
// only looks up certificates and never orders a certificate; only the local CA issues on demand, for localhost names.
import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import type { CertificatePair, TlsTerms } from '@tunnel/http-shell';
import { Cache, type Clock } from '@tunnel/runtime';
import { ContextCache, type ContextSource, type ContextWaiter } from './context-cache.ts';
import { findPairProblem } from './pair-check.ts';

/**
 * Maximum contexts (certificates prepared for handshakes) in memory, about 30 KB each. The least recently used context is evicted, and
 * created again for its next visitor.
 */
const TLS_CONTEXTS_MAX = 1000;
/** Maximum contexts created per second, about 1.4 ms of CPU time each. Further handshakes wait. */
const TLS_CONTEXTS_PER_SECOND = 200;
/** Time for which a certificate issued by the local CA is used: half of its lifetime. */
export const TLS_MADE_KEPT_MS = 45 * 86_400_000;

export interface CertificateStoreOptions {
  readonly terms: TlsTerms;
  readonly clock: Clock;
  /** Setting `[server] domain`. The certificate of the domain is used for visitors without SNI, unless there is a default certificate. */
  readonly domain: string;
  readonly contextsMax?: number;
  readonly contextsPerSecond?: number;
}

/** Issues certificates on demand from a local CA, for names without a stored certificate. */
export interface CertificateMaker {
  covers(host: string): boolean;
  issue(host: string): Promise<CertificatePair>;
}

/** A TLS certificate for a single name or several names, with its key. */
export class StoredCertificate implements ContextSource {
  context: SecureContext | null = null;
  waiters: Set<ContextWaiter> | null = null;
  /** Resolves when the certificate is issued. Null if the certificate exists. */
  making: Promise<void> | null = null;
  readonly #terms: TlsTerms;
  /** Number of names in the store that use the certificate. */
  names = 0;
  #pair: CertificatePair | Error;
  #read: X509Certificate | null = null;

  constructor(pair: CertificatePair | Promise<CertificatePair>, terms: TlsTerms) {
    this.#terms = terms;
    this.#pair = pair instanceof Promise ? new Error('the certificate is still being created') : pair;
    if (pair instanceof Promise) this.making = this.#await(pair);
  }

  async #await(pair: Promise<CertificatePair>): Promise<void> {
    this.#pair = await pair.catch((error: unknown) => error as Error);
    this.making = null;
  }

  /** Certificate and its private key. Throws the error if issuing failed. */
  get pair(): CertificatePair {
    if (this.#pair instanceof Error) throw this.#pair;
    return this.#pair;
  }

  get hasFailed(): boolean {
    return this.making === null && this.#pair instanceof Error;
  }

  options(): SecureContextOptions {
    return this.#terms.optionsOf(this.pair, 'visitors');
  }

  /** Reports whether the certificate's names cover the host. For a wildcard, any host below it is checked. */
  isFor(host: string): boolean {
    this.#read ??= new X509Certificate(this.pair.cert);
    return this.#read.checkHost(host.replace('*', 'any')) !== undefined;
  }
}

export class CertificateStore {
  readonly #options: CertificateStoreOptions;
  readonly #contexts: ContextCache;
  /** Certificates by name. A wildcard such as `*.shop.example.com` is a separate key. */
  readonly #byName = new Map<string, StoredCertificate>();
  #forAll: StoredCertificate | null = null;
  #made: MadeCertificates | null = null;

  constructor(options: CertificateStoreOptions) {
    this.#options = options;
    this.#contexts = new ContextCache({
      contextsMax: options.contextsMax ?? TLS_CONTEXTS_MAX,
      perSecond: options.contextsPerSecond ?? TLS_CONTEXTS_PER_SECOND,
      clock: options.clock,
    });
  }

  get terms(): TlsTerms {
    return this.#options.terms;
  }

  /** Number of names that have a specific certificate. */
  get size(): number {
    return this.#byName.size;
  }

  /**
   * Sets the default certificate, such as the files in `[tls]`, for names without a specific certificate. The pair must be checked already.
   * A null pair removes the default certificate.
   */
  setForAll(pair: CertificatePair | null): void {
    const stored = pair === null ? null : new StoredCertificate(pair, this.terms);
    // The default context is created at once and never evicted, so no handshake waits for it.
    if (stored !== null) stored.context = createSecureContext(stored.options());
    this.#forAll = stored;
  }

  /**
   * Sets the issuer for names below localhost, for which wildcards do not work: browsers and libraries reject a wildcard directly below a
   * top-level domain.
   */
  setMaker(maker: CertificateMaker): void {
    this.#made = new MadeCertificates(maker, this.#options, (certificate) => this.#contexts.drop(certificate));
  }

  /**
   * Stores a certificate for the names. Returns null on success, or the problem; the previous certificates then stay in use. `isTried`:
   * certificate and key are known to match.
   */
  set(names: readonly string[], pair: CertificatePair, isTried = false): string | null {
    const problem = isTried ? null : findPairProblem(pair);
    if (problem !== null) return problem;
    const stored = new StoredCertificate(pair, this.terms);
    for (const name of names) {
      this.#forget(name);
      this.#byName.set(name, stored);
      stored.names += 1;
    }
    return null;
  }

  remove(names: readonly string[]): void {
    for (const name of names) this.#forget(name);
  }

  #forget(name: string): void {
    const stored = this.#byName.get(name);
    if (stored === undefined) return;
    this.#byName.delete(name);
    stored.names -= 1;
    if (stored.names === 0) this.#contexts.drop(stored);
  }

  /**
   * Returns the certificate for a host, or null if there is none. `host` is null without SNI; otherwise it is in the form of foldHost(),
   * optionally with a `*.` prefix.
   */
  find(host: string | null): StoredCertificate | null {
    return host === null ? this.forNobody : (this.ownOf(host) ?? this.#forAll);
  }

  /** Certificate for visitors without SNI: the default certificate, or the certificate of `domain`. */
  get forNobody(): StoredCertificate | null {
    return this.#forAll ?? this.ownOf(this.#options.domain);
  }

  /**
   * Returns the specific certificate of a host, by exact name or by the wildcard directly above. The default certificate is not specific.
   */
  ownOf(host: string): StoredCertificate | null {
    if (this.#byName.size === 0) return null;
    const stored = this.#byName.get(host) ?? this.#byName.get(`*${host.slice(host.indexOf('.'))}`);
    return stored ?? this.#made?.get(host) ?? null;
  }

  /**
   * Reports whether public URLs of the host use https. The default certificate covers `domain` and the names directly below, no matter
   * which names it contains, because the operator configured it for them. Deeper names must be in the certificate: a usual wildcard covers
   * a single label, and visitors of deeper names would get a certificate error.
   */
  covers(host: string): boolean {
    if (this.#made?.covers(host) === true || this.ownOf(host) !== null) return true;
    if (this.#forAll === null) return false;
    return !isNestedBelow(host, this.#options.domain) || this.#forAll.isFor(host);
  }

  // ---- contexts for handshakes ----

  /** Returns null if the context is not ready. wait() reports when it is. */
  contextOf(stored: StoredCertificate): SecureContext | null {
    return stored === this.#forAll ? stored.context : this.#contexts.get(stored);
  }

  wait(stored: StoredCertificate, waiter: ContextWaiter): void {
    this.#contexts.wait(stored, waiter);
  }

  leave(stored: StoredCertificate, waiter: ContextWaiter): void {
    this.#contexts.leave(stored, waiter);
  }

  /** Rotates the key of TLS session tickets, once a day. */
  renewTickets(): void {
    this.setForAll(this.#forAll?.pair ?? null);
    this.#contexts.renewTickets(this.terms.ticketKeys);
  }

  stop(): void {
    this.#contexts.stop();
  }
}

/** Certificates issued by the local CA, each at its first use. The least recently used certificates are evicted. */
class MadeCertificates {
  readonly #maker: CertificateMaker;
  readonly #options: CertificateStoreOptions;
  /** Resolves when the local CA can issue the next certificate. */
  #turn: Promise<void> = Promise.resolve();
  readonly #byName: Cache<string, StoredCertificate>;

  constructor(
    maker: CertificateMaker,
    options: CertificateStoreOptions,
    onDropped: (certificate: StoredCertificate) => void,
  ) {
    this.#maker = maker;
    this.#options = options;
    const { clock, contextsMax: max = TLS_CONTEXTS_MAX } = options;
    // Certificate validity follows the wall clock, which also advances while the machine sleeps.
    const wallClock = { monotonic: () => clock.now() };
    this.#byName = new Cache({ max, clock: wallClock, ttlMs: TLS_MADE_KEPT_MS, onLeave: onDropped });
  }

  covers(host: string): boolean {
    return this.#maker.covers(host);
  }

  get(host: string): StoredCertificate | null {
    if (!this.covers(host)) return null;
    const known = this.#byName.get(host);
    if (known !== undefined && !known.hasFailed) return known;
    const certificate: StoredCertificate = new StoredCertificate(
      this.#issue(host, () => certificate.waiters !== null),
      this.#options.terms,
    );
    this.#byName.set(host, certificate);
    return certificate;
  }

  /** Issues certificates sequentially and at a limited rate, and only if a handshake still waits for the certificate. */
  async #issue(host: string, isWaitedFor: () => boolean): Promise<CertificatePair> {
    const { clock, contextsPerSecond = TLS_CONTEXTS_PER_SECOND } = this.#options;
    const turn = this.#turn;
    let give: (() => void) | undefined;
    this.#turn = new Promise((resolve) => {
      give = resolve;
    });
    await turn;
    if (!isWaitedFor()) {
      give?.();
      throw new Error('no longer needed');
    }
    const giveLater = (): void => void clock.setTimeout(() => give?.(), 1000 / contextsPerSecond);
    return this.#maker.issue(host).finally(giveLater);
  }
}

/** Reports whether the host has two or more labels in front of the domain. */
const isNestedBelow = (host: string, domain: string): boolean =>
  host.endsWith(`.${domain}`) && host.slice(0, -domain.length - 1).includes('.');
