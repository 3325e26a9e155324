// Texts about a custom domain: its state, the next step, reasons of errors, and the state of its certificate. Pure functions.
import type { DomainCertificate, DomainRecord, OwnDomainView } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';
import { plural } from '../../ui/format.ts';
import { sentence } from '../../ui/problem-text.ts';

export interface Said {
  readonly tone: Tone;
  /** The state in one to three words. */
  readonly short: string;
}

export interface Advice {
  readonly tone: Tone;
  readonly title: string;
  /** Explanation of the problem and the next step. */
  readonly text: string;
}

export const foundCount = (records: readonly DomainRecord[]): number => records.filter(({ found }) => found).length;

export const foundText = (records: readonly DomainRecord[]): string => {
  const found = foundCount(records);
  if (found === records.length) return records.length === 1 ? 'Found' : `All ${records.length} found`;
  return records.length === 1 ? 'Missing' : `${found} of ${records.length} found`;
};

/**
 * Returns whether the ownership record of a verified domain is missing. Tunnels can use the domain for some days; then the domain lapses.
 */
const isProofMissing = ({ state, last_error: error }: OwnDomainView): boolean =>
  state === 'verified' && error !== null && NO_PROOF.test(error);

export const stateOf = (domain: OwnDomainView): Said => {
  if (isProofMissing(domain)) return { tone: 'warn', short: 'Record missing' };
  return STATES[domain.state];
};

const STATES: Readonly<Record<OwnDomainView['state'], Said>> = {
  pending: { tone: 'accent', short: 'Waiting for DNS' },
  verified: { tone: 'good', short: 'Verified' },
  failed: { tone: 'bad', short: 'Not found' },
  lapsed: { tone: 'bad', short: 'Lapsed' },
};

/** Returns the advice about the domain's problem. Null if the domain has no problem. */
export const adviceOf = (domain: OwnDomainView): Advice | null => {
  const why = domain.last_error === null ? '' : ` ${errorText(domain.last_error)}`;
  switch (domain.state) {
    case 'pending':
      return {
        tone: 'accent',
        title: 'Add the records below at your DNS provider',
        text: `We check automatically. Most records appear within minutes.${why}`,
      };
    case 'failed':
      return {
        tone: 'bad',
        title: 'We stopped checking after three days',
        text: `Add the records below, then select Check now.${why}`,
      };
    case 'lapsed':
      return {
        tone: 'bad',
        title: 'New tunnels can’t use this domain',
        text: `The DNS record is gone, or another account has verified the domain. To verify the domain again, add the records below and select Check now.${why}`,
      };
    case 'verified':
      return verifiedAdvice(domain, why.trimStart());
  }
};

const verifiedAdvice = (domain: OwnDomainView, why: string): Advice | null => {
  if (isProofMissing(domain)) {
    return {
      tone: 'warn',
      title: 'The last check did not find the DNS record',
      text: 'The domain keeps working for now. Add the records below again within 7 days. After that, the domain lapses and new tunnels are rejected.',
    };
  }
  if (why !== '') return { tone: 'warn', title: 'The last check failed', text: why };
  const missing = domain.records.filter(({ found }) => !found);
  if (missing.some(({ purpose }) => purpose === 'route')) {
    return {
      tone: 'warn',
      title: 'Verified, but visitors can’t reach the domain yet',
      text: 'The DNS record that points to this server is missing. Add the missing record below.',
    };
  }
  if (missing.some(({ purpose }) => purpose === 'challenge')) {
    return {
      tone: 'warn',
      title: 'Verified, but the certificate needs one more record',
      text: 'A wildcard certificate can only be issued once the missing record below is added.',
    };
  }
  return null;
};

const NO_PROOF = /^no record with the token/;

/** Returns a sentence for an error text of the platform, which is terse as in a log. */
export const errorText = (error: string): string => {
  if (NO_PROOF.test(error)) return 'No DNS record with your token was found yet.';
  if (error.startsWith('another account has this name')) {
    return 'Another account has verified this name, and the other account’s record is still in your DNS. Remove that record.';
  }
  const reason = /^DNS gave no answer: (.+)$/s.exec(error)?.[1];
  if (reason !== undefined) {
    return `The DNS lookup failed (${reason.replace(/^E(?=[A-Z])/, '')}). Your records are not the cause. We check again automatically.`;
  }
  return sentence(error);
};

/** Returns the state of a domain's certificate. `now` is in ms since the epoch. */
export const certificateOf = ({ state, certificate }: OwnDomainView, now: number): Said => {
  if (certificate === null) return { tone: 'neutral', short: 'None' };
  switch (certificate.state) {
    case 'none':
      return { tone: 'neutral', short: state === 'verified' ? 'Not issued yet' : 'After DNS' };
    case 'ordering':
      return { tone: 'accent', short: 'Being issued' };
    case 'renewing':
      return { tone: 'good', short: 'Renewing' };
    case 'valid':
      return isOver(certificate, now) ? { tone: 'bad', short: 'Expired' } : { tone: 'good', short: 'Valid' };
    case 'failing':
      if (certificate.not_after === null) return { tone: 'bad', short: 'Not issued' };
      return isOver(certificate, now) ? { tone: 'bad', short: 'Expired' } : { tone: 'warn', short: 'Renewal failing' };
  }
};

export const isOver = ({ not_after: end }: DomainCertificate, now: number): boolean =>
  end !== null && Date.parse(end) <= now;

export const certificateText = ({ state, certificate }: OwnDomainView, now: number): string => {
  if (certificate === null) {
    return 'No certificate: certificates are turned off for this domain, or this server does not issue certificates. Visitors use http, or your service brings a certificate with tunnel tls.';
  }
  switch (certificate.state) {
    case 'none':
      return state === 'verified'
        ? 'The certificate will be issued shortly. If nothing happens, this server does not issue certificates.'
        : 'The certificate is issued once the DNS records are found.';
    case 'ordering':
      return 'The certificate is being issued. Most certificates take a few seconds.';
    case 'renewing':
      return 'The certificate is being renewed. Until then, visitors get the current certificate.';
    case 'valid':
      return 'Renewed automatically. No action needed.';
    case 'failing':
      return certificate.not_after === null || isOver(certificate, now)
        ? 'Visitors can’t use https yet. We retry automatically.'
        : 'Visitors still get the current certificate. We retry automatically.';
  }
};

/** Returns the purpose of a DNS record in words. */
export const purposeText = ({ purpose, type }: Pick<DomainRecord, 'purpose' | 'type'>): string => {
  if (purpose === 'challenge') return 'Certificate';
  if (purpose === 'route') return 'Routing';
  return type === 'CNAME' ? 'Routing and ownership' : 'Ownership';
};

/** Returns the hint below the DNS records. Only some DNS providers require the hint. */
export const recordHint = ({ records, wildcard }: Pick<OwnDomainView, 'records' | 'wildcard'>): string => {
  const names = 'Some DNS providers expect the name without your domain at the end.';
  if (records.some(({ type }) => type === 'A' || type === 'AAAA')) {
    return `The top of a domain cannot have a CNAME record, so A, AAAA and TXT records are used instead. ${names} For the top of the domain, enter @.`;
  }
  return wildcard
    ? `The asterisk is part of the name. ${names}`
    : `${names} Turn off your provider’s proxy for the record.`;
};

export interface Hop extends Said {
  readonly key: 'dns' | 'edge' | 'service';
  readonly title: string;
}

/** Returns the hops of a visitor's path, as shown in the diagram. */
export const domainHops = (domain: OwnDomainView, now: number): readonly Hop[] => [
  { key: 'dns', title: 'Your DNS', ...dnsHop(domain) },
  { key: 'edge', title: 'Our edge', ...edgeHop(domain, now) },
  { key: 'service', title: 'Your service', ...serviceHop(domain) },
];

const dnsHop = ({ records, state }: OwnDomainView): Said => {
  if (foundCount(records) === records.length) return { tone: 'good', short: foundText(records) };
  return { tone: MISSING[state], short: foundText(records) };
};

const MISSING: Readonly<Record<OwnDomainView['state'], Tone>> = {
  pending: 'accent',
  verified: 'warn',
  failed: 'bad',
  lapsed: 'bad',
};

const edgeHop = (domain: OwnDomainView, now: number): Said => {
  if (domain.state !== 'verified') return { tone: 'neutral', short: 'Waiting for DNS' };
  if (domain.certificate === null) return { tone: 'good', short: 'No certificate' };
  const { tone, short } = certificateOf(domain, now);
  return { tone, short: short === 'Valid' ? 'Certificate valid' : `Certificate: ${short.toLowerCase()}` };
};

const serviceHop = ({ state, active_tunnels: active }: OwnDomainView): Said => {
  if (active > 0) return { tone: 'good', short: plural(active, 'live tunnel') };
  return { tone: state === 'verified' ? 'warn' : 'neutral', short: 'No tunnel yet' };
};
