// Looks at own domains when their time has come. It only begins looks: one whose DNS servers are slow holds up nobody else's.
import type { DomainLooks } from '../services/domains/domain-looks.ts';
import type { Job } from './jobs.ts';

/** How often own domains that are due are looked for. */
const DOMAINS_EVERY_MS = 1000;

export const lookAtDomains = (looks: Pick<DomainLooks, 'beginDue'>): Job => ({
  name: 'look at domains',
  everyMs: DOMAINS_EVERY_MS,
  run: () => looks.beginDue(),
});
