// DNS records required by a server with automatic certificates: the list of records, the check of a DNS response, and the texts. Pure
// functions; records-watch.ts looks up the records.
import { challengeName, type DnsAnswer } from '@tunnel/certificates/domains';
import { isEdgeItself, isOfDomain } from '@tunnel/rules/names';
import { isLoopbackHost, problemOfAddress } from '@tunnel/rules/net';

export interface WantedRecord {
  readonly name: string;
  readonly type: 'A' | 'NS';
  /** Target of the record. Null if the record must point to this machine, but its public addresses are unknown. */
  readonly value: string | null;
  /** Name to look up. For a wildcard record, a random label below the domain. */
  readonly askedAt: string;
  /** Feature that requires the record. Empty if the whole server depends on the record. */
  readonly why: string;
}

export interface RecordFacts {
  readonly domain: string;
  /** Host name of the platform's URL. */
  readonly host: string;
  /** Whether the server runs its own DNS responder: `[acme] dns = "builtin"`. */
  readonly hasResponder: boolean;
  /** Public addresses of this machine. Often empty, because the machine is behind NAT. */
  readonly publicAddresses: readonly string[];
  /** Random label not used by any tunnel, to check the wildcard record. */
  readonly randomLabel: string;
}

export const wantedRecords = (facts: RecordFacts): WantedRecord[] => {
  const { domain, host, hasResponder, publicAddresses, randomLabel } = facts;
  const value = publicAddresses.length === 0 ? null : publicAddresses.join(', ');
  const address = (name: string, askedAt: string, why = ''): WantedRecord => ({ name, type: 'A', value, askedAt, why });
  // IP addresses, localhost names and this machine's own name need no DNS record.
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
  /** The record is missing. `reason` is empty if the DNS has no such record. */
  | { readonly kind: 'missing'; readonly reason: string };

/**
 * Checks the DNS response for a record. The expected address is often unknown, because behind NAT the record points to a router. An
 * address that is not reachable from the internet counts as missing.
 */
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

/** Returns the table of all records, printed at startup. */
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

/** Returns the message for a missing record that has appeared. */
export const foundText = (record: WantedRecord, shown: string): string =>
  `DNS record found: ${record.name} ${typeOf(record)} ${shown}\n`;
