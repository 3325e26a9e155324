// Exports of the rules for custom domains.
export {
  askedLookWaitMs,
  type DomainEffect,
  type DomainEvent,
  type DomainMail,
  type DomainState,
  type OwnDomain,
  type OwnDomains,
  transitionDomain,
} from './domain-life.rules.ts';
export { type DomainName, type DomainNameFacts, readDomainName } from './domain-names.rules.ts';
export {
  challengeName,
  challengeTarget,
  cnameTarget,
  type DnsAnswer,
  findingsOf,
  isOwnTarget,
  PROOF_TOKEN_BYTES,
  type ProofAnswers,
  type ProofFindings,
  proofQuestions,
  proofToken,
} from './domain-proof.rules.ts';
export { type KeptLook, keptLook, recordsOf } from './domain-records.rules.ts';
