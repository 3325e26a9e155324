// Looks at own domains when their time has come. It only begins looks: one whose DNS servers are slow holds up nobody else's.
import type { DomainVerifier } from '../services/domains/domain-verifier.ts';
import type { Job } from './jobs.ts';

/** How often own domains that are due are looked for. */
const DOMAINS_EVERY_MS = 1000;

export const verifyDomains = (verifier: Pick<DomainVerifier, 'beginDue'>): Job => ({
  name: 'look at domains',
  everyMs: DOMAINS_EVERY_MS,
  run: () => verifier.beginDue(),
});
