export { AcmeClient } from './client/acme-client.ts';
export {
  type ChallengeAnswer,
  type ChallengeType,
  challengeCertificate,
  challengeRecord,
} from './client/challenge-answers.ts';
export {
  CertificateKeeper,
  type KeeperListener,
  type KeeperOptions,
  type OrderResult,
} from './keeper/certificate-keeper.ts';
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
export { type ChallengeSolver, createStoredSolver } from './keeper/challenge-solver.ts';
export { FileCertificateStore } from './keeper/file-certificate-store.ts';
export { type KeyFile, SealedKeys } from './keeper/sealed-keys.ts';
export { ManagedCertificates, type ManagedCertificatesOptions } from './managed-certificates.ts';
