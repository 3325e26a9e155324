export {
  type BudgetEntry,
  type CertificateLife,
  type CertificateState,
  certificateDueAt,
  certificateState,
  NEW_CERTIFICATE,
  type OrderBudgetRules,
  takeFromBudget,
  transitionCertificate,
} from './certificate-life.rules.ts';
export {
  type CertificateFacts,
  type CertifiedDomain,
  type CertifiedName,
  type WantedCertificate,
  wantedCertificates,
} from './wanted-certificates.rules.ts';
