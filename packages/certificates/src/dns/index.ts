export { ExecChallenges } from './exec-challenges.ts';
export { DnsLookups } from './lookups.ts';
export { addressesFor } from './responder/own-addresses.ts';
