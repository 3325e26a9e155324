// Certificates for names of this machine, each made when it is first asked for: `*.localhost` is refused by browsers and libraries alike, as a wildcard
// right below a top-level name. As many as were asked for last; each is a context of the cache, within its pace.
import type { SecureContext, SecureContextOptions } from 'node:tls';
import type { CertificatePair, TlsTerms } from '@tunnel/http-shell';
import type { Clock } from '@tunnel/runtime';
import type { ContextSource, ContextWaiter } from './context-cache.ts';

export interface LocalCertificatesOptions {
  /** An authority that vouches for localhost and names below it. */
  readonly issue: (name: string) => Promise<CertificatePair>;
  readonly terms: TlsTerms;
  readonly clock: Clock;
  readonly namesMax: number;
  /** From there on it is made anew. */
  readonly leafLifeMs: number;
}

export class LocalCertificate implements ContextSource {
  context: SecureContext | null = null;
  waiters: Set<ContextWaiter> | null = null;
  making: Promise<void> | null;
  readonly madeAt: number;
  readonly #terms: TlsTerms;
  #made: CertificatePair | Error | null = null;

  constructor(pair: Promise<CertificatePair>, terms: TlsTerms, madeAt: number) {
    this.#terms = terms;
    this.madeAt = madeAt;
    this.making = pair.then(
      (made) => this.#settle(made),
      (error: unknown) => this.#settle(error as Error),
    );
  }

  get hasFailed(): boolean {
    return this.#made instanceof Error;
  }

  /** Throws why there is none. */
  options(): SecureContextOptions {
    if (this.#made === null) throw new Error('it is still being made');
    if (this.#made instanceof Error) throw this.#made;
    return this.#terms.optionsOf(this.#made, 'visitors');
  }

  #settle(made: CertificatePair | Error): void {
    this.#made = made;
    this.making = null;
  }
}

const LOCALHOST = 'localhost';

export class LocalCertificates {
  readonly #given: LocalCertificatesOptions;
  /** The one that was asked for last at the end. */
  readonly #byName = new Map<string, LocalCertificate>();

  constructor(options: LocalCertificatesOptions) {
    this.#given = options;
  }

  get size(): number {
    return this.#byName.size;
  }

  covers(host: string): boolean {
    return host === LOCALHOST || host.endsWith(`.${LOCALHOST}`);
  }

  /** null: a name that is not of this machine. `onDropped`: one that gives way to it. */
  find(host: string | null, onDropped: (certificate: LocalCertificate) => void): LocalCertificate | null {
    const name = host ?? LOCALHOST;
    if (!this.covers(name)) return null;
    const { clock, terms, issue, namesMax, leafLifeMs } = this.#given;
    const found = this.#byName.get(name);
    this.#byName.delete(name);
    const now = clock.now();
    if (found !== undefined && !found.hasFailed && now - found.madeAt < leafLifeMs / 2) {
      this.#byName.set(name, found);
      return found;
    }
    if (found !== undefined) onDropped(found);
    const made = new LocalCertificate(issue(name), terms, now);
    this.#byName.set(name, made);
    for (const [oldest, certificate] of this.#byName) {
      if (this.#byName.size <= namesMax) break;
      this.#byName.delete(oldest);
      onDropped(certificate);
    }
    return made;
  }
}
