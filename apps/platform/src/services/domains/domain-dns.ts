// DNS access for checks of custom domains. The DNS module is loaded at the first check.
import { randomBytes } from 'node:crypto';
import { type DnsAnswer, type DomainName, PROOF_TOKEN_BYTES, proofToken } from '@tunnel/certificates/domains';
import type { Clock } from '@tunnel/runtime';
import { checkDnsRecords, type DomainCheck } from './check-dns-records.ts';
import type { DomainSettings } from './domain-settings.ts';

export interface DomainDns {
  check(domain: DomainName): Promise<DomainCheck>;
  addresses(name: string): Promise<DnsAnswer>;
  /** Closes DNS access. Lookups in progress end without an answer. */
  close(): void;
}

/** Opens DNS access through the configured `[dns] resolvers`. */
export const openDomainDns = async (
  { resolvers, serverDomain }: Pick<DomainSettings, 'resolvers' | 'serverDomain'>,
  clock: Clock,
): Promise<DomainDns> => {
  const { DnsLookups } = await import('@tunnel/certificates/dns');
  const lookups = new DnsLookups({ resolvers, clock });
  return {
    check: (domain) => {
      const randomLabel = proofToken(randomBytes(PROOF_TOKEN_BYTES));
      return checkDnsRecords(lookups, domain, { serverDomain, randomLabel });
    },
    addresses: (name) => lookups.addresses(name),
    close: () => lookups.close(),
  };
};
