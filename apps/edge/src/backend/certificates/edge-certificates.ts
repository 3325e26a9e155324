// Certificates that come to an edge by themselves: from its platform, or ordered by itself where it has none. Who shows
// them in handshakes follows.
import type { ChallengeAnswer, OrderResult } from '@tunnel/certificates/acme';
import type { CertificateState } from '@tunnel/certificates/life';
import type { CertificatePair } from '@tunnel/http-shell';

/** What is known of one, without its key. Times are milliseconds since the epoch. */
export interface KnownCertificate {
  readonly id: string;
  readonly names: readonly string[];
  /** Of the operator's own names; others are tenants'. */
  readonly isOperators: boolean;
  readonly state: CertificateState;
  readonly issuer: string | null;
  readonly notBefore: number | null;
  readonly notAfter: number | null;
  readonly renewAt: number | null;
  readonly lastError: string | null;
}

/** Neither throws. */
export interface CertificateListener {
  /**
   * It came, or is another than before; null: it is shown from now on. Else what is wrong with it, and the one before stays. `isTried`: certificate and key
   * are known to belong together, which takes longest to find out.
   */
  onPair(id: string, names: readonly string[], pair: CertificatePair, isTried?: boolean): string | null;
  /** It is shown no more. */
  onGone(id: string): void;
}

/** What somebody who validates a name has: the token of http-01 and the host it came to, or the name of tls-alpn-01. */
export type AskedChallenge = { readonly token: string; readonly host: string } | { readonly tlsName: string };

/** `busy`: an order for it is under way. */
export type RenewalAnswer = 'begun' | 'busy' | 'unknown';

export interface EdgeCertificates {
  /** Before the start; those of the last run are told within it. */
  follow(listener: CertificateListener): void;
  list(): Promise<readonly KnownCertificate[]>;
  /** Whether there is one for exactly this name, or will be. Costs nothing: strangers ask. */
  isWanted(name: string): boolean;
  /** null: nobody waits for it, or that cannot be known in time. Never rejects. */
  findChallenge(key: AskedChallenge): Promise<ChallengeAnswer | null>;
  /** null: they are ordered elsewhere. */
  readonly orders: Readonly<Record<OrderResult, number>> | null;
  /** The one for this name, now, whatever failed before; absent: they are ordered elsewhere. */
  renew?(name: string): Promise<RenewalAnswer>;
}
