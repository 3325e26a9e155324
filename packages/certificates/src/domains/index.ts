// Exports of the rules for custom domains.
export {
  type DomainEffect,
  type DomainEvent,
  type DomainMail,
  type DomainState,
  type OwnDomain,
  type OwnDomains,
  requestedCheckWaitMs,
  transitionDomain,
} from './domain-life.rules.ts';
export { type DomainName, type DomainNameFacts, readDomainName } from './domain-names.rules.ts';
export {
  challengeName,
  challengeTarget,
  cnameTarget,
  type DnsAnswer,
  extractTokens,
  isOwnTarget,
  PROOF_TOKEN_BYTES,
  type ProofAnswers,
  type ProofFindings,
  proofQuestions,
  proofToken,
} from './domain-proof.rules.ts';
export { checkToStore, recordsOf, type StoredCheck } from './domain-records.rules.ts';
