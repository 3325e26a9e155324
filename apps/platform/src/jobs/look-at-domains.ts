// Looks at own domains when their time has come. It only begins looks: one whose DNS servers are slow holds up nobody else's.
import { LIMITS } from '../limits.ts';
import type { DomainLooks } from '../services/domains/domain-looks.ts';
import type { Job } from './jobs.ts';

export const lookAtDomains = (looks: Pick<DomainLooks, 'beginDue'>): Job => ({
  name: 'look at domains',
  everyMs: LIMITS.DOMAINS_EVERY_MS,
  run: () => looks.beginDue(),
});
