// All certificates of the edge by the names that they are for: exact, wildcard of one label, and the one that answers every name that has nothing
// better. A handshake only looks here; nothing that a stranger asks for makes anything come.
import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import type { CertificatePair, TlsTerms } from '@tunnel/http-shell';
import { Cache, type Clock } from '@tunnel/runtime';
import { ContextCache, type ContextSource, type ContextWaiter } from './context-cache.ts';
import { problemOf } from './pair-check.ts';

/** certificates by name that are ready for handshakes, at some 30 KB each; the one that was used longest ago is evicted, and made ready again for its next visitor */
const TLS_CONTEXTS_MAX = 1000;
/** certificates made ready in a second, at some 1.4 ms each; a handshake that needs one more waits for its turn */
const TLS_CONTEXTS_PER_SECOND = 200;
/** how long a certificate is shown that was made here for a name of this machine; half of its life */
export const TLS_MADE_KEPT_MS = 45 * 86_400_000;

export interface CertificateStoreOptions {
  readonly terms: TlsTerms;
  readonly clock: Clock;
  /** [server] domain: its certificate is shown to visitors that name nobody, unless there is one for all. */
  readonly domain: string;
  readonly contextsMax?: number;
  readonly contextsPerSecond?: number;
}

/** Makes certificates for names that nobody has put in, when they are asked for: an authority of this machine. */
export interface CertificateMaker {
  covers(host: string): boolean;
  issue(host: string): Promise<CertificatePair>;
}

/** One certificate, for one name or more. */
export class StoredCertificate implements ContextSource {
  context: SecureContext | null = null;
  waiters: Set<ContextWaiter> | null = null;
  /** null: it is there. */
  making: Promise<void> | null = null;
  readonly #terms: TlsTerms;
  /** Names in the store that lead here. */
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

  /** Throws why there is none. */
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

  /** By the names that are written in it. Of a wildcard: whichever host below. */
  isFor(host: string): boolean {
    this.#read ??= new X509Certificate(this.pair.cert);
    return this.#read.checkHost(host.replace('*', 'any')) !== undefined;
  }
}

export class CertificateStore {
  readonly #given: CertificateStoreOptions;
  readonly #contexts: ContextCache;
  /** By name; `*.shop.example.com` is its own key. */
  readonly #byName = new Map<string, StoredCertificate>();
  #forAll: StoredCertificate | null = null;
  #made: MadeCertificates | null = null;

  constructor(options: CertificateStoreOptions) {
    this.#given = options;
    this.#contexts = new ContextCache({
      contextsMax: options.contextsMax ?? TLS_CONTEXTS_MAX,
      perSecond: options.contextsPerSecond ?? TLS_CONTEXTS_PER_SECOND,
      clock: options.clock,
    });
  }

  get terms(): TlsTerms {
    return this.#given.terms;
  }

  /** Names with a certificate of their own. */
  get size(): number {
    return this.#byName.size;
  }

  /** For every name that has none of its own, as the files of `[tls]` are. It has been tried; null: there is none (any more). */
  setForAll(pair: CertificatePair | null): void {
    const stored = pair === null ? null : new StoredCertificate(pair, this.terms);
    // Ready at once and for good: it has a place of its own, and nobody waits for it.
    if (stored !== null) stored.context = createSecureContext(stored.options());
    this.#forAll = stored;
  }

  /** For names below localhost, which no wildcard can be for: browsers and libraries refuse one right below a top-level name. */
  setMaker(maker: CertificateMaker): void {
    this.#made = new MadeCertificates(maker, this.#given, (certificate) => this.#contexts.drop(certificate));
  }

  /** null: it is shown from now on. Else why it is not: those before stay. `isTried`: certificate and key are known to belong together. */
  set(names: readonly string[], pair: CertificatePair, isTried = false): string | null {
    const problem = isTried ? null : problemOf(pair);
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

  /** What a visitor of this host is shown; host null: it names none. null: nothing. `host` as foldHost() gives it, or `*.` and such a one. */
  find(host: string | null): StoredCertificate | null {
    return host === null ? this.forNobody : (this.ownOf(host) ?? this.#forAll);
  }

  /** The one for all, or what `domain` has. */
  get forNobody(): StoredCertificate | null {
    return this.#forAll ?? this.ownOf(this.#given.domain);
  }

  /** By its name or the wildcard right above it, as certificates are: one for all is nobody's own. */
  ownOf(host: string): StoredCertificate | null {
    if (this.#byName.size === 0) return null;
    const stored = this.#byName.get(host) ?? this.#byName.get(`*${host.slice(host.indexOf('.'))}`);
    return stored ?? this.#made?.get(host) ?? null;
  }

  /**
   * Whether people are told to come by https. The one for all is for `domain` and the names right below it, whatever is written in it: an operator who
   * sets it says so. Names below those are another matter: the usual wildcard has one label, and who is sent to them stops at an error.
   */
  covers(host: string): boolean {
    if (this.#made?.covers(host) === true || this.ownOf(host) !== null) return true;
    if (this.#forAll === null) return false;
    return !isNestedBelow(host, this.#given.domain) || this.#forAll.isFor(host);
  }

  // ---- ready for a handshake ----

  /** null: not yet; wait() says when. */
  contextOf(stored: StoredCertificate): SecureContext | null {
    return stored === this.#forAll ? stored.context : this.#contexts.get(stored);
  }

  wait(stored: StoredCertificate, waiter: ContextWaiter): void {
    this.#contexts.wait(stored, waiter);
  }

  leave(stored: StoredCertificate, waiter: ContextWaiter): void {
    this.#contexts.leave(stored, waiter);
  }

  /** A day is over. */
  renewTickets(): void {
    this.setForAll(this.#forAll?.pair ?? null);
    this.#contexts.renewTickets(this.terms.ticketKeys);
  }

  stop(): void {
    this.#contexts.stop();
  }
}

/** Those that were asked for last, each made at the first time. */
class MadeCertificates {
  readonly #maker: CertificateMaker;
  readonly #given: CertificateStoreOptions;
  /** Resolves when the next one may be made. */
  #turn: Promise<void> = Promise.resolve();
  readonly #byName: Cache<string, StoredCertificate>;

  constructor(
    maker: CertificateMaker,
    options: CertificateStoreOptions,
    onDropped: (certificate: StoredCertificate) => void,
  ) {
    this.#maker = maker;
    this.#given = options;
    const { clock, contextsMax: max = TLS_CONTEXTS_MAX } = options;
    // Certificates are valid by the wall clock, which goes on while the machine sleeps.
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
      this.#given.terms,
    );
    this.#byName.set(host, certificate);
    return certificate;
  }

  /** One after the other, so many a second, and none for those who have left by then. */
  async #issue(host: string, isWaitedFor: () => boolean): Promise<CertificatePair> {
    const { clock, contextsPerSecond = TLS_CONTEXTS_PER_SECOND } = this.#given;
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

/** Two labels or more in front of the domain. */
const isNestedBelow = (host: string, domain: string): boolean =>
  host.endsWith(`.${domain}`) && host.slice(0, -domain.length - 1).includes('.');
