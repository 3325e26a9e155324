// Custom domains of an account as lines for people: the list, the DNS records to create, and the next command.
import { domainToUnicode } from 'node:url';
import type { DomainCertificate, DomainRecord, OwnDomainView } from '@tunnel/contract';
import { oneLine } from '../io/problem-report.ts';
import { type Colours, columns, counted, momentText } from './text.ts';

/** Returns the name of a domain as typed in a shell. A name with a star is quoted, because the star has a special meaning in a shell. */
export const typedName = ({ name }: Pick<OwnDomainView, 'name'>): string => {
  const plain = oneLine(name);
  return plain.startsWith('*') ? `'${plain}'` : plain;
};

/** Lists the domains of an account. `limit` is the maximum number of domains, or null without a maximum. */
export const domainLines = (list: readonly OwnDomainView[], limit: number | null, colours: Colours): string[] => {
  if (list.length === 0) return ['no domains', '  Add a domain: tunnel domains add shop.example.com'];
  const lines = columns(list.map(cellsOf)).map((line) => line.replace(/^ {2}/, ''));
  const open = list.find(({ state }) => state !== 'verified');
  return [
    ...lines.map((line, at) => (list[at]?.state === 'verified' ? line : colours.dim(line))),
    ...(limit === null ? [] : [`${list.length} of ${limit} domains`]),
    ...(open === undefined ? [] : [`  Show the DNS records: tunnel domains show ${typedName(open)}`]),
  ];
};

const cellsOf = (domain: OwnDomainView): string[] => [
  oneLine(domain.name),
  domain.state,
  domain.state === 'verified' ? certificateText(domain.certificate) : recordsText(domain.records),
  domain.active_tunnels === 0 ? '' : `in use by ${counted(domain.active_tunnels, 'tunnel', 'tunnels')}`,
];

const recordsText = (records: readonly DomainRecord[]): string =>
  `${records.filter(({ found }) => found).length} of ${counted(records.length, 'record', 'records')} found`;

/** Describes the certificate of a domain. `certificate` is null if no certificate is wanted. */
export const certificateText = (certificate: DomainCertificate | null): string => {
  if (certificate === null) return 'certificate off';
  const { state, not_after: end } = certificate;
  const until = end === null ? '' : ` until ${momentText(end)}`;
  return CERTIFICATE_TEXTS[state](until);
};

const CERTIFICATE_TEXTS: Readonly<Record<DomainCertificate['state'], (until: string) => string>> = {
  none: () => 'no certificate yet',
  ordering: () => 'issuing certificate',
  valid: (until) => `certificate valid${until}`,
  renewing: (until) => `certificate valid${until}, renewing`,
  failing: (until) => `certificate failing${until === '' ? '' : `; the current certificate is valid${until}`}`,
};

/** Describes a domain in full. */
export const domainDetails = (domain: OwnDomainView, colours: Colours): string[] => [
  `${titleOf(domain)}: ${domain.state}${checkedText(domain)}`,
  ...problem(domain.state === 'verified' ? null : domain.last_error),
  '',
  ...recordLines(domain, colours),
  '',
  ...(domain.state === 'verified'
    ? [`Certificate: ${certificateText(domain.certificate)}`, ...problem(domain.certificate?.last_error ?? null)]
    : []),
  ...nextLines(domain),
];

const titleOf = ({ name }: OwnDomainView): string => {
  const plain = oneLine(name);
  const [star, host] = plain.startsWith('*.') ? ['*.', plain.slice(2)] : ['', plain];
  const spelled = star + domainToUnicode(host);
  return spelled === plain ? plain : `${plain} (${oneLine(spelled)})`;
};

const checkedText = ({ checked_at: at }: OwnDomainView): string => (at === null ? '' : `, checked ${momentText(at)}`);

const problem = (text: string | null): string[] => (text === null ? [] : [`  ${oneLine(text)}`]);

/** Lists DNS records as a table to copy from. A cell has one field of a DNS provider's form. */
const recordLines = ({ records }: OwnDomainView, colours: Colours): string[] => {
  const [head = '', ...rows] = columns([
    ['TYPE', 'NAME', 'VALUE', 'FOR', ''],
    ...records.map((record) => [
      record.type,
      oneLine(record.name),
      oneLine(record.value),
      whyOf(record),
      foundText(record),
    ]),
  ]);
  const paint = (row: string, at: number): string => {
    const mark = records[at]?.found === true ? colours.green : colours.yellow;
    return row.replace(/(\u2713 found|missing)$/, (text) => mark(text));
  };
  return ['Create these records at your DNS provider:', colours.dim(head), ...rows.map(paint)];
};

/** Returns the purpose of a DNS record. A CNAME is proof and route at once: its target contains the token and resolves to the edge. */
const whyOf = ({ type, purpose }: DomainRecord): string => {
  if (purpose === 'challenge') return 'certificate';
  return purpose === 'proof' && type === 'CNAME' ? 'proof and route' : purpose;
};

const foundText = ({ found }: DomainRecord): string => (found ? '✓ found' : 'missing');

const nextLines = (domain: OwnDomainView): string[] => {
  const name = typedName(domain);
  const look = `tunnel domains check ${name}`;
  switch (domain.state) {
    case 'verified':
      return [useLine(domain)];
    case 'pending':
      return ['The server checks automatically. New records can take a few minutes to appear.', `  Check now: ${look}`];
    case 'failed':
      return ['Automatic checks have stopped.', `  Once the records exist: ${look}`];
    case 'lapsed':
      return ['New tunnels cannot use the domain until it is verified again.', `  Once the records exist: ${look}`];
  }
};

export const useLine = (domain: OwnDomainView): string => `  Use it: tunnel http 3000 --domain ${typedName(domain)}`;

/** Describes the changes of a domain since the previous check. With `before` null, describes everything found so far. */
export const progressLines = (before: OwnDomainView | null, now: OwnDomainView): string[] => {
  const known = (record: DomainRecord): boolean =>
    before?.records.some(({ type, name, value, found }) => found && isSame(record, { type, name, value })) ?? false;
  const found = now.records.filter((record) => record.found && !known(record));
  const [stateBefore, stateNow] = [before, now].map((domain) => domain && stateText(domain));
  const [certificateBefore, certificateNow] = [before, now].map((domain) => domain && certificateProgress(domain));
  return [
    ...found.map(({ type, name }) => `  found: ${type} ${oneLine(name)}`),
    ...(stateNow === stateBefore ? [] : [`  ${stateNow}`]),
    ...(certificateNow === certificateBefore || certificateNow === '' ? [] : [`  ${certificateNow}`]),
  ];
};

const isSame = (record: DomainRecord, { type, name, value }: Pick<DomainRecord, 'type' | 'name' | 'value'>): boolean =>
  record.type === type && record.name === name && record.value === value;

const stateText = ({ state, last_error: error }: OwnDomainView): string =>
  state === 'verified' || error === null ? state : `${state}: ${oneLine(error)}`;

/** Describes the progress of a certificate. Empty until the domain is verified, because no certificate is ordered earlier. */
const certificateProgress = ({ state, certificate }: OwnDomainView): string => {
  if (state !== 'verified' || certificate === null) return '';
  const { last_error: error } = certificate;
  return `${certificateText(certificate)}${error === null ? '' : `: ${oneLine(error)}`}`;
};
