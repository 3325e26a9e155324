// Custom domains in registrations: the protocols that allow a custom domain instead of a subdomain, and the normalization of its name.

import { type DomainNameFacts, readDomainName } from '@tunnel/certificates/domains';
import { Fault } from '@tunnel/errors';
import { shownText } from '@tunnel/rules/names';
import { TUNNEL_PROTOCOLS, type TunnelProtocol } from '@tunnel/rules/tunnels';

interface DomainFields {
  readonly domain?: string | undefined;
  readonly subdomain?: string | undefined;
}

/**
 * Returns the requested domain in A-label form, including a leading `*.`, or null if no domain is requested. Ownership is checked
 * elsewhere.
 */
export const wantedDomain = (
  protocol: TunnelProtocol,
  { domain, subdomain }: DomainFields,
  facts: DomainNameFacts,
): string | null | Fault => {
  if (domain === undefined) return null;
  if (TUNNEL_PROTOCOLS[protocol].endpoint.kind !== 'name') {
    return invalid(`domains are for http, https and tls tunnels, not for ${protocol}`);
  }
  if (subdomain !== undefined) return invalid('a tunnel can have a domain or a subdomain, not both');
  const reading = readDomainName(domain, facts);
  if (reading.kind === 'name') return reading.domain.name;
  return invalid(`domain '${shownText(domain)}' is not valid: ${reading.reason}`);
};

/**
 * Fault for a tls tunnel without a host. Visitors find a tls tunnel only by its host; a generated host would have to be reported to the
 * client, and passed on to visitors.
 */
export const refuseHostless = (): Fault => invalid('a tls tunnel needs a domain or a subdomain');

const invalid = (reason: string): Fault => new Fault('TUNNEL_DOMAIN_INVALID', { reason });
