// A host of its owner's own that a registration names in the place of a subdomain: what it may be, and whom it goes with.
import { Fault } from '@tunnel/errors';
import { CORE_LIMITS } from './limits.ts';
import { isOfDomain, shownText } from './names.ts';
import { TUNNEL_PROTOCOLS, type TunnelProtocol } from './tunnel-protocols.ts';

interface DomainFields {
  readonly domain?: string | undefined;
  readonly subdomain?: string | undefined;
}

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** No top-level domain is a number: what ends in one is an address. */
const ENDS_AS_ADDRESS = /(^|\.)(\d+|0x[0-9a-f]*)$/;

/** null: none is named. Nobody has proven one to this edge: an account that names one is told so, and the operator with it. */
export const refuseDomain = (
  protocol: TunnelProtocol,
  { domain, subdomain }: DomainFields,
  edgeDomain: string,
): Fault | null => {
  if (domain === undefined) return null;
  if (TUNNEL_PROTOCOLS[protocol].endpoint.kind !== 'name') {
    return invalid(`a domain goes with http, https and tls tunnels, not with ${protocol}`);
  }
  if (subdomain !== undefined) return invalid('a tunnel has a domain or a subdomain, not both');
  const problem = problemOfDomain(domain, edgeDomain);
  if (problem !== null) return invalid(`domain '${shownText(domain)}' is not valid: ${problem}`);
  return new Fault('TUNNEL_DOMAIN_UNVERIFIED', { domain: shownText(domain) });
};

/** A tls tunnel is found by its host alone: one that names none would have to be told, and told on. */
export const refuseHostless = (): Fault => invalid('a tls tunnel needs a domain or a subdomain');

/** null: a host name, or `*.` and one. In any case of letters, and with one dot at its end. */
export const problemOfDomain = (domain: string, edgeDomain: string): string | null => {
  const host = domain.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).replace(/\.$/, '');
  const name = host.startsWith('*.') ? host.slice(2) : host;
  if (name.length === 0) return 'it is empty';
  if (host.length > CORE_LIMITS.DOMAIN_MAX_CHARS) return `it is longer than ${CORE_LIMITS.DOMAIN_MAX_CHARS} characters`;
  if (ENDS_AS_ADDRESS.test(name) || name.includes(':')) return 'it is an address';
  const labels = name.split('.');
  if (labels.length < 2) return 'it has one label alone';
  if (!labels.every((label) => LABEL.test(label))) {
    return 'only labels of 1 to 63 letters a-z, digits and inner hyphens are allowed (others in their xn-- form)';
  }
  return isOfDomain(name, edgeDomain) ? "it belongs to the edge's own domain: use a subdomain" : null;
};

const invalid = (reason: string): Fault => new Fault('TUNNEL_DOMAIN_INVALID', { reason });
