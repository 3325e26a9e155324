// The door of the rules of own domains.
export {
  askedLookWaitMs,
  type DomainEffect,
  type DomainEvent,
  type DomainMail,
  type DomainState,
  holderOf,
  NO_DOMAINS,
  nextLookAt,
  type OwnDomain,
  type OwnDomains,
  transitionDomain,
} from './domain-life.ts';
export {
  type DomainName,
  type DomainNameFacts,
  type DomainNameReading,
  readDomainName,
} from './domain-names.ts';
export {
  challengeName,
  challengeTarget,
  cnameTarget,
  type DnsAnswer,
  findingsOf,
  foldName,
  isOwnTarget,
  PROOF_TOKEN_BYTES,
  type ProofAnswers,
  type ProofFindings,
  type ProofQuestions,
  proofOf,
  proofQuestions,
  proofToken,
} from './domain-proof.ts';
export {
  type KeptLook,
  keptLook,
  type RecordFacts,
  type RecordPurpose,
  recordsOf,
  type ShownRecord,
} from './domain-records.ts';
