// The rules for targets that a model may publish from this computer and its network: parses the targets allowed by the owner, and checks
// a target against the allowed targets. Text that cannot be parsed allows no target.
import ipaddr from 'ipaddr.js';

export interface AllowedTarget {
  /** Host in the spelling of `sameHost`. */
  readonly host: string;
  readonly from: number;
  readonly to: number;
}

/** Targets allowed without a setting: ports used by programs of the user, without the ports of system services. */
export const ALLOWED_BY_DEFAULT: readonly string[] = ['127.0.0.1:1024-65535'];

const TARGET =
  /^(?:\[(?<address>[0-9a-f:.]+)\]|(?<host>[^\s:/@?#*[\]]+)):(?:(?<every>\*)|(?<from>\d{1,5})(?:-(?<to>\d{1,5}))?)$/i;
const PORT_MAX = 65_535;

/** Parses `host:port`, `host:from-to` or `host:*`, with an IPv6 address in brackets. Returns null for any other text. */
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
 * Returns the spelling of a host used for the check. The same spelling must be dialed, because a resolver could resolve another spelling
 * differently. Unusual spellings of an address (127.1, 0x7f000001, 127.0.0.1 with a dot behind it) remain names that no rule allows,
 * because the resolver's interpretation cannot be predicted.
 */
export const plainHost = (host: string): string => {
  const lower = host.toLowerCase();
  const address = lower.replace(/^\[(.*)\]$/, '$1');
  if (ipaddr.IPv6.isValid(address)) {
    const parsed = ipaddr.IPv6.parse(address);
    return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : parsed.toString();
  }
  // Text in brackets is not a name, so its trailing dot stays: without the dot, the text might be an address.
  const name = lower.replace(/(?<=[^.\]])\.$/, '');
  return ipaddr.isValid(name) ? lower : name;
};

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '::1']);

/** Returns the same spelling for all spellings of a host. `localhost` and `::1` count as 127.0.0.1. */
const sameHost = (host: string): string => {
  const plain = plainHost(host);
  return LOOPBACK_NAMES.has(plain) ? '127.0.0.1' : plain;
};
