// Interface of automatically issued certificates of an edge: from its platform, or ordered by the edge if there is no platform. Listeners
// use the certificates in TLS handshakes.
import type { ChallengeAnswer, OrderResult } from '@tunnel/certificates/acme';
import type { CertificateState } from '@tunnel/certificates/life';
import type { CertificatePair } from '@tunnel/http-shell';

/** Facts about a certificate, without its private key. Times are in milliseconds since the epoch. */
export interface KnownCertificate {
  readonly id: string;
  readonly names: readonly string[];
  /** True for the operator's names, false for tenants' names. */
  readonly isOperators: boolean;
  readonly state: CertificateState;
  readonly issuer: string | null;
  readonly notBefore: number | null;
  readonly notAfter: number | null;
  readonly renewAt: number | null;
  readonly lastError: string | null;
}

/** Is notified of new and removed certificates. The methods must not throw. */
export interface CertificateListener {
  /**
   * Called with a new or changed certificate. Returns null if the certificate is in use from now on. Otherwise returns the problem, and
   * the previous certificate stays in use. `isTried`: certificate and key are known to match, which skips the slowest check.
   */
  onPair(id: string, names: readonly string[], pair: CertificatePair, isTried?: boolean): string | null;
  /** Called when a certificate must no longer be used. */
  onGone(id: string): void;
}

/** Key of a challenge lookup: the token and the requested host of http-01, or the TLS name of tls-alpn-01. */
export type AskedChallenge = { readonly token: string; readonly host: string } | { readonly tlsName: string };

/** Result of a manual renewal. `busy`: an order for the certificate is in progress. */
export type RenewalAnswer = 'begun' | 'busy' | 'unknown';

export interface EdgeCertificates {
  /** Sets the listener. Must be called before start(), which reports the certificates of the last run. */
  follow(listener: CertificateListener): void;
  list(): Promise<readonly KnownCertificate[]>;
  /** Whether a certificate for exactly this name exists or will be ordered. Cheap, because strangers can trigger the call. */
  isWanted(name: string): boolean;
  /**
   * Finds the response to a challenge. Returns null if no order waits for the challenge, or if the lookup takes too long. Never rejects.
   */
  findChallenge(key: AskedChallenge): Promise<ChallengeAnswer | null>;
  /** Number of orders by result. Null if the platform orders the certificates. */
  readonly orders: Readonly<Record<OrderResult, number>> | null;
  /** Renews the certificate for a name at once, regardless of earlier failures. Undefined if the platform orders the certificates. */
  renew?(name: string): Promise<RenewalAnswer>;
}
