// What the pages say about a domain: its state, what to do next, why something does not work, how far its certificate is. Pure.
import type { DomainCertificate, DomainRecord, OwnDomainView } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';
import { plural } from '../../ui/format.ts';
import { sentence } from '../../ui/problem-text.ts';

export interface Said {
  readonly tone: Tone;
  /** In one or two words. */
  readonly short: string;
}

export interface Advice {
  readonly tone: Tone;
  readonly title: string;
  /** What it means, and what to do next. */
  readonly text: string;
}

export const foundCount = (records: readonly DomainRecord[]): number => records.filter(({ found }) => found).length;

export const foundText = (records: readonly DomainRecord[]): string => {
  const found = foundCount(records);
  if (found === records.length) return records.length === 1 ? 'Found' : `All ${records.length} found`;
  return records.length === 1 ? 'Missing' : `${found} of ${records.length} found`;
};

/** A domain whose proof is missing lapses after some days; until then tunnels use it. */
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

/** null: all is well. */
export const adviceOf = (domain: OwnDomainView): Advice | null => {
  const why = domain.last_error === null ? '' : ` ${errorText(domain.last_error)}`;
  switch (domain.state) {
    case 'pending':
      return {
        tone: 'accent',
        title: 'Set the records below where your DNS is managed',
        text: `We look for them by ourselves. Mostly they are there within minutes.${why}`,
      };
    case 'failed':
      return {
        tone: 'bad',
        title: 'We stopped looking after three days',
        text: `Set the records below, then press Check now.${why}`,
      };
    case 'lapsed':
      return {
        tone: 'bad',
        title: 'New tunnels can’t use this domain any more',
        text: `Its record is gone from DNS, or another account has proven the domain since. To get it back, set the records below and press Check now.${why}`,
      };
    case 'verified':
      return verifiedAdvice(domain, why.trimStart());
  }
};

const verifiedAdvice = (domain: OwnDomainView, why: string): Advice | null => {
  if (isProofMissing(domain)) {
    return {
      tone: 'warn',
      title: 'Its record was not found at the last look',
      text: 'The domain goes on for now. Put the records below back within 7 days: after that it lapses, and new tunnels are refused.',
    };
  }
  if (why !== '') return { tone: 'warn', title: 'The last look did not succeed', text: why };
  const missing = domain.records.filter(({ found }) => !found);
  if (missing.some(({ purpose }) => purpose === 'route')) {
    return {
      tone: 'warn',
      title: 'Verified, but visitors don’t arrive yet',
      text: 'The record that leads visitors to us is missing. Set it below.',
    };
  }
  if (missing.some(({ purpose }) => purpose === 'challenge')) {
    return {
      tone: 'warn',
      title: 'Verified, but its certificate needs one more record',
      text: 'A certificate for all names below it can only be ordered with the record that is missing below.',
    };
  }
  return null;
};

const NO_PROOF = /^no record with the token/;

/** The platform's words are short, as a log needs them. */
export const errorText = (error: string): string => {
  if (NO_PROOF.test(error)) return 'No record with your token was found yet.';
  if (error.startsWith('another account has this name')) {
    return 'Another account has proven this name by a record that is still there. Remove that record from your DNS.';
  }
  const reason = /^DNS gave no answer: (.+)$/s.exec(error)?.[1];
  if (reason !== undefined) {
    return `DNS gave no answer (${reason.replace(/^E(?=[A-Z])/, '')}). That is no fault of your records; we look again.`;
  }
  return sentence(error);
};

/** `now` in ms. */
export const certificateOf = ({ state, certificate }: OwnDomainView, now: number): Said => {
  if (certificate === null) return { tone: 'neutral', short: 'None' };
  switch (certificate.state) {
    case 'none':
      return { tone: 'neutral', short: state === 'verified' ? 'Not ordered yet' : 'After DNS' };
    case 'ordering':
      return { tone: 'accent', short: 'Being ordered' };
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
    return 'None is ordered: you wanted none, or this server orders none. Visitors come over http, or your service brings its own with tunnel tls.';
  }
  switch (certificate.state) {
    case 'none':
      return state === 'verified'
        ? 'It will be ordered in a moment. If it stays so, certificates are not switched on at this server.'
        : 'It is ordered when the records are found.';
    case 'ordering':
      return 'It is on its way. Mostly that takes a few seconds.';
    case 'renewing':
      return 'A new one is on its way; visitors get the old one until it is there.';
    case 'valid':
      return 'It is renewed by itself. There is nothing to do.';
    case 'failing':
      return certificate.not_after === null || isOver(certificate, now)
        ? 'Visitors can’t come over https yet. We try again by ourselves.'
        : 'Visitors still get the old one. We try again by ourselves.';
  }
};

/** What a record is for. */
export const purposeText = ({ purpose, type }: Pick<DomainRecord, 'purpose' | 'type'>): string => {
  if (purpose === 'challenge') return 'Certificate';
  if (purpose === 'route') return 'Visitors';
  return type === 'CNAME' ? 'Visitors and proof' : 'Proof';
};

/** A hint that only some need, below the records. */
export const recordHint = ({ records, wildcard }: Pick<OwnDomainView, 'records' | 'wildcard'>): string => {
  const names = 'Some providers want the name without your domain at its end.';
  if (records.some(({ type }) => type === 'A' || type === 'AAAA')) {
    return `No CNAME can stand at the top of a domain, so an address and a text take its part. ${names} For the top itself that is @.`;
  }
  return wildcard ? `The star is part of the name. ${names}` : `${names} Leave proxies of your provider off for it.`;
};

export interface Hop extends Said {
  readonly key: 'dns' | 'edge' | 'service';
  readonly title: string;
}

/** The way of a visitor, as the drawing shows it. */
export const hopsOf = (domain: OwnDomainView, now: number): readonly Hop[] => [
  { key: 'dns', title: 'Your DNS', ...dnsHop(domain) },
  { key: 'edge', title: 'Our edge', ...edgeHop(domain, now) },
  { key: 'service', title: 'Your service', ...serviceHop(domain) },
];

const dnsHop = ({ records, state }: OwnDomainView): Said => {
  if (foundCount(records) === records.length) return { tone: 'good', short: foundText(records) };
  return { tone: MISSING[state], short: foundText(records) };
};

const MISSING: Readonly<Record<OwnDomainView['state'], Tone>> = {
  ...{ pending: 'accent', verified: 'warn', failed: 'bad', lapsed: 'bad' },
};

const edgeHop = (domain: OwnDomainView, now: number): Said => {
  if (domain.state !== 'verified') return { tone: 'neutral', short: 'Waits for DNS' };
  if (domain.certificate === null) return { tone: 'good', short: 'No certificate' };
  const { tone, short } = certificateOf(domain, now);
  return { tone, short: short === 'Valid' ? 'Certificate valid' : `Certificate: ${short.toLowerCase()}` };
};

const serviceHop = ({ state, active_tunnels: active }: OwnDomainView): Said => {
  if (active > 0) return { tone: 'good', short: plural(active, 'live tunnel') };
  return { tone: state === 'verified' ? 'warn' : 'neutral', short: 'No tunnel yet' };
};
