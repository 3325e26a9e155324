// A host of its owner's own that a registration names in the place of a subdomain: whom it goes with, and how it is read.

import { type DomainNameFacts, readDomainName } from '@tunnel/certificates/domains';
import { Fault } from '@tunnel/errors';
import { shownText } from '@tunnel/rules/names';
import { TUNNEL_PROTOCOLS, type TunnelProtocol } from '@tunnel/rules/tunnels';

interface DomainFields {
  readonly domain?: string | undefined;
  readonly subdomain?: string | undefined;
}

/** In its A-label form, with its `*.`; null: none is named. Whose it is is for others to say. */
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

/** A tls tunnel is found by its host alone: one that names none would have to be told, and told on. */
export const refuseHostless = (): Fault => invalid('a tls tunnel needs a domain or a subdomain');

const invalid = (reason: string): Fault => new Fault('TUNNEL_DOMAIN_INVALID', { reason });
