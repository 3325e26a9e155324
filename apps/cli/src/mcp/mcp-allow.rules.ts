// What a model may publish of this machine and its network: the targets that its owner has allowed, as they are written, and whether one of
// them covers a target. Whatever is not understood covers nothing.
import ipaddr from 'ipaddr.js';

export interface AllowedTarget {
  /** As `sameHost` has it. */
  readonly host: string;
  readonly from: number;
  readonly to: number;
}

/** Without a word of the owner: what a person started on this machine, and nothing that the system runs. */
export const ALLOWED_BY_DEFAULT: readonly string[] = ['127.0.0.1:1024-65535'];

const TARGET =
  /^(?:\[(?<address>[0-9a-f:.]+)\]|(?<host>[^\s:/@?#*[\]]+)):(?:(?<every>\*)|(?<from>\d{1,5})(?:-(?<to>\d{1,5}))?)$/i;
const PORT_MAX = 65_535;

/** `host:port`, `host:from-to`, `host:*`; an IPv6 address in brackets. null: it is none of these. */
export const parseAllowedTarget = (text: string): AllowedTarget | null => {
  const { address, host = address, every, from, to = from } = TARGET.exec(text)?.groups ?? {};
  if (host === undefined) return null;
  if (address !== undefined && !ipaddr.IPv6.isValid(address)) return null;
  if (every !== undefined) return { host: sameHost(host), from: 1, to: PORT_MAX };
  const target = { host: sameHost(host), from: Number(from), to: Number(to) };
  return target.from >= 1 && target.from <= target.to && target.to <= PORT_MAX ? target : null;
};

export const isTargetAllowed = (allowed: readonly AllowedTarget[], host: string, port: number): boolean => {
  const asked = sameHost(host);
  return allowed.some((target) => target.host === asked && port >= target.from && port <= target.to);
};

/**
 * The host as it is judged, which is how it has to be dialled: another spelling of it might lead a resolver elsewhere. Odd spellings of an
 * address (127.1, 0x7f000001, 127.0.0.1 with a dot behind it) stay names that nobody has allowed: which address a resolver makes of them is
 * not for us to guess.
 */
export const plainHost = (host: string): string => {
  const lower = host.toLowerCase();
  const address = lower.replace(/^\[(.*)\]$/, '$1');
  if (ipaddr.IPv6.isValid(address)) {
    const parsed = ipaddr.IPv6.parse(address);
    return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : parsed.toString();
  }
  // What stands in brackets is no name: without its dot it might be an address.
  const name = lower.replace(/(?<=[^.\]])\.$/, '');
  return ipaddr.isValid(name) ? lower : name;
};

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '::1']);

/** One spelling for each host: `localhost` and `::1` count as 127.0.0.1. */
const sameHost = (host: string): string => {
  const plain = plainHost(host);
  return LOOPBACK_NAMES.has(plain) ? '127.0.0.1' : plain;
};
