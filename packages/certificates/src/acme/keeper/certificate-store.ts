// Where certificates, orders under way, the account and answers to challenges are kept, for one authority (by its directory's URL: an
// account of one is nothing to another). Several keepers may share one: a lease says who works on a certificate, and each write of
// theirs carries its epoch, so that one who was thought dead changes nothing any more.
import type { CertificateLife, OrderBudgetRules } from '../../life/certificate-life.rules.ts';
import type { ChallengeAnswer } from '../client/challenge-answers.ts';
import type { IssuedCertificate } from '../client/issued-certificate.ts';

export interface StoredCertificate extends IssuedCertificate {
  /** PKCS #8 in PEM, sealed. */
  readonly key: string;
}

export interface CertificateRecord {
  readonly id: string;
  readonly names: readonly string[];
  /** The account that the names belong to; null for the operator's names. */
  readonly accountId: string | null;
  readonly life: CertificateLife;
  /** Of the order under way, sealed: it is finished with the key that it was begun with. */
  readonly orderKey: string | null;
  readonly certificate: StoredCertificate | null;
}

export type RecordChanges = Partial<Pick<CertificateRecord, 'life' | 'orderKey' | 'certificate'>>;

export interface Claim {
  readonly record: CertificateRecord;
  readonly epoch: number;
}

export interface ClaimRules {
  /** False: wildcard certificates are left to a keeper that can have them validated. Default: true. */
  readonly wildcards?: boolean;
  /**
   * The account of each certificate that the claiming keeper works on now, once per certificate. Certificates of accounts that occur least come first, and
   * accounts that occur `CERTIFICATE_ORDERS_AT_ONCE_PER_ACCOUNT` times are passed over, so that slow orders of one account cannot hold up another account's.
   */
  readonly busyAccounts?: readonly string[];
}

export interface StoredAccount {
  /** JWK, sealed. */
  readonly key: string;
  /** null: the authority has not been told of it, or does not know it any more. */
  readonly url: string | null;
  readonly email: string;
}

/** `until`: when the account can order again; `isWhole`: the budget is empty for every account. */
export type BudgetTaken =
  | { readonly kind: 'taken' }
  | { readonly kind: 'empty'; readonly until: number; readonly isWhole: boolean };

/** By `name`: whichever of the two validates it now. */
export type ChallengeKey = { readonly token: string } | { readonly tlsName: string } | { readonly name: string };

export interface CertificateStore {
  /** The record for exactly these names, made where there is none. */
  want(names: readonly string[], accountId?: string | null): Promise<CertificateRecord>;
  /** With its key and whatever is under way. */
  forget(id: string): Promise<void>;
  list(): Promise<readonly CertificateRecord[]>;
  get(id: string): Promise<CertificateRecord | null>;
  /** Leases the certificate that has been due the longest and is leased by no keeper. Returns null when none is due. */
  claim(owner: string, now: number, leaseMs: number, takes?: ClaimRules): Promise<Claim | null>;
  /** False, here and below: another has it by now, or it is forgotten. */
  extend(claim: Claim, now: number, leaseMs: number): Promise<boolean>;
  save(claim: Claim, changes: RecordChanges): Promise<boolean>;
  release(claim: Claim): Promise<void>;
  /** From outside of the keeper; false while somebody works on it. */
  change(id: string, now: number, change: (life: CertificateLife) => CertificateLife): Promise<boolean>;
  /** The authority is asked about the renewal of all that was issued, one each `everyMs` from now on; what is worked on is left out. */
  wantInfo(now: number, everyMs: number): Promise<void>;
  account(): Promise<StoredAccount | null>;
  /** Written when the one that is there has the key `insteadOf` (null: there is none); the answer is what is there then. */
  saveAccount(account: StoredAccount, insteadOf: string | null): Promise<StoredAccount>;
  /** Takes one order from a budget that all keepers of the store share. `account` null: an order of the operator, which is always allowed. */
  takeFromBudget(name: string, rules: OrderBudgetRules, now: number, account: string | null): Promise<BudgetTaken>;
  setChallenge(answer: ChallengeAnswer, until: number): Promise<void>;
  clearChallenge(answer: ChallengeAnswer): Promise<void>;
  /** What an edge asks: by the token of http-01, by the name of tls-alpn-01, or by the name of either. */
  findChallenge(key: ChallengeKey, now: number): Promise<ChallengeAnswer | null>;
}
