// Starts the checks of own domains that are due. The job does not wait for the checks, so slow DNS servers of a domain do not delay other
// accounts' domains.
import type { DomainVerifier } from '../services/domains/domain-verifier.ts';
import type { Job } from './jobs.ts';

/** Interval between searches for own domains that are due. */
const DOMAINS_EVERY_MS = 1000;

export const verifyDomains = (verifier: Pick<DomainVerifier, 'beginDue'>): Job => ({
  name: 'check domains',
  everyMs: DOMAINS_EVERY_MS,
  run: () => verifier.beginDue(),
});
