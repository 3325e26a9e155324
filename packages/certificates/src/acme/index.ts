export { type ChallengeAnswer, challengeCertificate } from './client/challenge-answers.ts';
export type { OrderResult } from './keeper/certificate-keeper.ts';
export type {
  BudgetTaken,
  CertificateRecord,
  CertificateStore,
  ChallengeKey,
  Claim,
  ClaimRules,
  RecordChanges,
  StoredAccount,
  StoredCertificate,
} from './keeper/certificate-store.ts';
export { FileCertificateStore } from './keeper/file-certificate-store.ts';
export { SealedKeys } from './keeper/sealed-keys.ts';
export { LocalAuthority } from './local/local-authority.ts';
export { ManagedCertificates } from './managed-certificates.ts';
