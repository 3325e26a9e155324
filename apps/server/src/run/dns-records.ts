// The DNS records that an installation with certificates by themselves needs: which they are, whether an answer shows one, and how that is said.
// Pure: who looks them up is records-watch.ts.
import { challengeName, type DnsAnswer } from '@tunnel/certificates/domains';
import { isEdgeItself, isOfDomain } from '@tunnel/rules/names';
import { isLoopbackHost, problemOfAddress } from '@tunnel/rules/net';

export interface WantedRecord {
  readonly name: string;
  readonly type: 'A' | 'NS';
  /** What it leads to; null: to this machine, whose public addresses are unknown. */
  readonly value: string | null;
  /** Asked instead of the name: of a wildcard any label below it. */
  readonly askedAt: string;
  /** Why it is needed, where the installation runs without it. */
  readonly why: string;
}

export interface RecordFacts {
  readonly domain: string;
  /** The platform's host. */
  readonly host: string;
  /** `[acme] dns = "builtin"`. */
  readonly hasResponder: boolean;
  /** Of this machine. Often there are none: it stands behind NAT. */
  readonly publicAddresses: readonly string[];
  /** Nobody's label. */
  readonly randomLabel: string;
}

export const wantedRecords = (facts: RecordFacts): WantedRecord[] => {
  const { domain, host, hasResponder, publicAddresses, randomLabel } = facts;
  const value = publicAddresses.length === 0 ? null : publicAddresses.join(', ');
  const address = (name: string, askedAt: string, why = ''): WantedRecord => ({ name, type: 'A', value, askedAt, why });
  // An address, and this machine's own name, are found without a record.
  const isApart = !isOfDomain(host, domain) && !isEdgeItself(host, domain) && !isLoopbackHost(host);
  return [
    address(domain, domain),
    address(`*.${domain}`, `${randomLabel}.${domain}`, 'tunnels'),
    ...(isApart ? [address(host, host, 'the dashboard')] : []),
    ...(hasResponder
      ? [
          {
            name: challengeName(domain),
            type: 'NS' as const,
            value: domain,
            askedAt: challengeName(domain),
            why: 'the wildcard certificate',
          },
        ]
      : []),
  ];
};

export type RecordLook =
  | { readonly kind: 'found'; readonly shown: string }
  /** `reason` empty: there is none. */
  | { readonly kind: 'missing'; readonly reason: string };

/** Which address is the right one is seldom known here: behind NAT it is a router's. One that leads nowhere from outside is none. */
export const judgeRecord = (
  { type, value }: WantedRecord,
  answer: DnsAnswer,
  publicAddresses: readonly string[],
): RecordLook => {
  if (answer.kind === 'no-answer') return { kind: 'missing', reason: `no response: ${answer.reason}` };
  if (answer.kind === 'absent') return { kind: 'missing', reason: '' };
  if (type === 'NS') return { kind: 'found', shown: value ?? '' };
  const shown = answer.values.join(', ');
  const isReachable = answer.values.some((address) => problemOfAddress(address, false) === null);
  if (publicAddresses.length > 0 && !isReachable) {
    return { kind: 'missing', reason: `${shown} is not reachable from the internet` };
  }
  return { kind: 'found', shown };
};

const typeOf = ({ type }: WantedRecord): string => (type === 'A' ? 'A/AAAA' : type);

const stateOf = (look: RecordLook): string => {
  if (look.kind === 'found') return `found ${look.shown}`;
  return look.reason === '' ? 'missing' : `missing (${look.reason})`;
};

const UNKNOWN = "this machine's public address";

/** At the start: all of them. */
export const recordsText = (records: readonly WantedRecord[], looks: readonly RecordLook[]): string => {
  const rows = records.map((record, at) => [
    record.name,
    typeOf(record),
    record.value ?? UNKNOWN,
    stateOf(looks[at] ?? { kind: 'missing', reason: '' }),
    record.why === '' ? '' : `(for ${record.why})`,
  ]);
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const lines = rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const isWhole = looks.length === records.length && looks.every(({ kind }) => kind === 'found');
  const rest = isWhole ? [] : ['  The server checks for missing records every minute and is usable meanwhile.'];
  return ['DNS records:', ...lines.map((line) => `  ${line}`), ...rest, ''].join('\n');
};

/** When one appears. */
export const foundText = (record: WantedRecord, shown: string): string =>
  `DNS record found: ${record.name} ${typeOf(record)} ${shown}\n`;
