export { type DnsChallenges, untilSeen } from './dns-challenges.ts';
export { ExecChallenges, type ExecChallengesOptions } from './exec-challenges.ts';
export { DNS_LIMITS } from './limits.ts';
export { type DomainLook, lookAtDomain } from './look-at-domain.ts';
export { DnsLookups, type DnsLookupsOptions } from './lookups.ts';
export { DnsResponder, type DnsResponderOptions, type ResponderCounts } from './responder/dns-responder.ts';
