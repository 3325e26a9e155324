export { ExecChallenges } from './exec-challenges.ts';
export { DnsLookups } from './lookups.ts';
