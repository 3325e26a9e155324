// Storage for certificates, open orders, the account and challenge responses of an authority (by directory URL, because accounts belong to
// an authority). Several keepers can share a store: a lease assigns a certificate to a keeper, and every write carries the lease's epoch,
// so that a keeper with a lost lease changes nothing.
import type { CertificateLife, OrderBudgetRules } from '../../life/certificate-life.rules.ts';
import type { ChallengeAnswer } from '../client/challenge-answers.ts';
import type { IssuedCertificate } from '../client/issued-certificate.ts';

export interface StoredCertificate extends IssuedCertificate {
  /** Private key of the certificate as PKCS #8 in PEM, encrypted. */
  readonly key: string;
}

export interface CertificateRecord {
  readonly id: string;
  readonly names: readonly string[];
  /** Account that owns the certificate's names; null for the operator's names. */
  readonly accountId: string | null;
  readonly life: CertificateLife;
  /** Encrypted key of the open order, which must be finished with the same key. */
  readonly orderKey: string | null;
  readonly certificate: StoredCertificate | null;
}

export type RecordChanges = Partial<Pick<CertificateRecord, 'life' | 'orderKey' | 'certificate'>>;

export interface Claim {
  readonly record: CertificateRecord;
  readonly epoch: number;
}

export interface ClaimRules {
  /** False leaves wildcard certificates to another keeper that can answer dns-01 challenges. Default: true. */
  readonly wildcards?: boolean;
  /**
   * Accounts of the certificates that the keeper is processing, one entry per certificate. Accounts with fewer entries come first, and
   * accounts with `CERTIFICATE_ORDERS_AT_ONCE_PER_ACCOUNT` entries are skipped, so that slow orders of an account cannot delay another
   * account.
   */
  readonly busyAccounts?: readonly string[];
}

export interface StoredAccount {
  /** Key of the ACME account as JWK, encrypted. */
  readonly key: string;
  /** URL of the ACME account. Null if it is not registered, or unknown to the authority. */
  readonly url: string | null;
  readonly email: string;
}

/** `until`: time when the account can order again; `isWhole`: the budget is empty for every account. */
export type BudgetTaken =
  | { readonly kind: 'taken' }
  | { readonly kind: 'empty'; readonly until: number; readonly isWhole: boolean };

/** What identifies a stored challenge. `name` finds the current challenge of either type. */
export type ChallengeKey = { readonly token: string } | { readonly tlsName: string } | { readonly name: string };

export interface CertificateStore {
  /** Returns the stored certificate record for exactly these names and creates it if needed. */
  want(names: readonly string[], accountId?: string | null): Promise<CertificateRecord>;
  /** Deletes a certificate record with its keys and open order. */
  forget(id: string): Promise<void>;
  list(): Promise<readonly CertificateRecord[]>;
  get(id: string): Promise<CertificateRecord | null>;
  /** Leases the certificate that has been due the longest and is not leased. Returns null if no certificate is due. */
  claim(owner: string, now: number, leaseMs: number, takes?: ClaimRules): Promise<Claim | null>;
  /** Returns false, as do the next methods, if another keeper has the lease or the record was deleted. */
  extend(claim: Claim, now: number, leaseMs: number): Promise<boolean>;
  save(claim: Claim, changes: RecordChanges): Promise<boolean>;
  release(claim: Claim): Promise<void>;
  /** Changes a record without a lease. Returns false while the record is leased. */
  change(id: string, now: number, change: (life: CertificateLife) => CertificateLife): Promise<boolean>;
  /** Schedules renewal information requests for all issued certificates, `everyMs` apart. Leased records are skipped. */
  wantInfo(now: number, everyMs: number): Promise<void>;
  account(): Promise<StoredAccount | null>;
  /** Saves the account if the stored account has the key `insteadOf` (null: no account stored). Returns the account stored afterwards. */
  saveAccount(account: StoredAccount, insteadOf: string | null): Promise<StoredAccount>;
  /**
   * Takes an order from a budget shared by all keepers of the store. `account` null is an order of the operator, which is always allowed.
   */
  takeFromBudget(name: string, rules: OrderBudgetRules, now: number, account: string | null): Promise<BudgetTaken>;
  setChallenge(answer: ChallengeAnswer, until: number): Promise<void>;
  clearChallenge(answer: ChallengeAnswer): Promise<void>;
  /** Lookup by an edge: by token for http-01, by name for tls-alpn-01, or by name for either. */
  findChallenge(key: ChallengeKey, now: number): Promise<ChallengeAnswer | null>;
}
