// Classifies IP addresses, so that requests made on behalf of a tenant never reach internal addresses.
import ipaddr from 'ipaddr.js';
import { isLoopbackHost } from './loopback.ts';

export type AddressClass =
  | 'public'
  | 'loopback'
  | 'private'
  | 'link-local'
  | 'carrier-grade-nat'
  | 'unique-local'
  | 'metadata'
  | 'multicast'
  | 'broadcast'
  | 'unspecified'
  | 'documentation'
  | 'benchmarking'
  | 'reserved'
  /** Address with a zone, such as `fe80::1%eth0`. A zone is only meaningful on its machine. */
  | 'zoned'
  | 'invalid';

const NAMES: Readonly<Record<Exclude<AddressClass, 'public'>, string>> = {
  loopback: 'a loopback address',
  private: 'a private address',
  'link-local': 'a link-local address',
  'carrier-grade-nat': 'a carrier-grade NAT address',
  'unique-local': 'a unique local address',
  metadata: 'a cloud metadata address',
  multicast: 'a multicast address',
  broadcast: 'the broadcast address',
  unspecified: 'an unspecified address',
  documentation: 'a documentation address',
  benchmarking: 'a benchmarking address',
  reserved: 'a reserved address',
  zoned: 'an address with a zone',
  invalid: 'not an IP address',
};

const PASS_WHEN_PRIVATE: ReadonlySet<AddressClass> = new Set<AddressClass>([
  'loopback',
  'private',
  'link-local',
  'carrier-grade-nat',
  'unique-local',
]);

/** Returns why `address` must not be contacted ("a private address"), or null. Deny by default: only global unicast passes. */
export const problemOfAddress = (address: string, allowPrivate: boolean): string | null => {
  const found = classOfAddress(address);
  if (found === 'public' || (allowPrivate && PASS_WHEN_PRIVATE.has(found))) return null;
  return NAMES[found];
};

/** Accepts the usual spelling only. `0x7f.1` and similar spellings are 'invalid' here; URL parsers resolve them. */
export const classOfAddress = (address: string): AddressClass => {
  if (address.includes('%')) return 'zoned';
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return classOf4(ipaddr.IPv4.parse(address));
  // ipaddr.js reads ::1.2.3.4 as ::ffff:1.2.3.4, a different address. The form is long deprecated.
  if (/^::[\d.]+\.\d+$/.test(address) && ipaddr.IPv4.isValid(address.slice(2))) return 'reserved';
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return 'invalid';
  const dotted = address.includes('.') ? address.slice(address.lastIndexOf(':') + 1) : null;
  if (dotted !== null && !ipaddr.IPv4.isValidFourPartDecimal(dotted)) return 'invalid';
  return classOf6(ipaddr.IPv6.parse(address));
};

/**
 * Cloud metadata services, which hand out credentials to any local request: AWS, Google and most others; ECS and EKS; Tencent; Scaleway;
 * Alibaba; Azure, with an address that looks public; and their IPv6 addresses, including OpenStack.
 */
const METADATA: ReadonlySet<string> = new Set([
  ...['169.254.169.254', '169.254.170.2', '169.254.170.23', '169.254.0.23', '169.254.42.42'],
  ...['100.100.100.200', '168.63.129.16'],
  ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:42::42', 'fe80::a9fe:a9fe'],
]);

/** Address ranges that ipaddr.js only calls reserved, under more specific names. */
const NAMED_4 = {
  documentation: ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'].map((range) => ipaddr.IPv4.parseCIDR(range)),
  benchmarking: [ipaddr.IPv4.parseCIDR('198.18.0.0/15')],
};
const NAMED_6 = {
  documentation: ['2001:db8::/32', '3fff::/20'].map((range) => ipaddr.IPv6.parseCIDR(range)),
  benchmarking: [ipaddr.IPv6.parseCIDR('2001:2::/48')],
};

const CLASS_OF_RANGE: ReadonlyMap<string, AddressClass> = new Map([
  ['unicast', 'public'],
  ['loopback', 'loopback'],
  ['private', 'private'],
  ['linkLocal', 'link-local'],
  ['carrierGradeNat', 'carrier-grade-nat'],
  ['uniqueLocal', 'unique-local'],
  ['multicast', 'multicast'],
  ['broadcast', 'broadcast'],
  ['unspecified', 'unspecified'],
  ['documentation', 'documentation'],
  ['benchmarking', 'benchmarking'],
]);

const classOf4 = (address: ipaddr.IPv4): AddressClass => {
  if (METADATA.has(address.toString())) return 'metadata';
  const named = ipaddr.subnetMatch(address, NAMED_4, '');
  return CLASS_OF_RANGE.get(named === '' ? address.range() : named) ?? 'reserved';
};

const classOf6 = (address: ipaddr.IPv6): AddressClass => {
  if (METADATA.has(address.toString())) return 'metadata';
  const carried = carriedBy(address.parts);
  if (carried.length > 0) return carried.map(classOf4).find((found) => found !== 'public') ?? 'public';
  const named = ipaddr.subnetMatch(address, NAMED_6, '');
  const found = CLASS_OF_RANGE.get(named === '' ? address.range() : named) ?? 'reserved';
  // ipaddr.js reports unknown ranges as unicast, but only 2000::/3 is allocated.
  return found === 'public' && !isGlobalUnicast(address.parts) ? 'reserved' : found;
};

const isGlobalUnicast = ([first = 0]: readonly number[]): boolean => (first & 0xe000) === 0x2000;

/** IPv4 addresses embedded in an IPv6 address, to which its packets are delivered. Empty for ordinary addresses. */
const carriedBy = (parts: readonly number[]): readonly ipaddr.IPv4[] => {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = parts;
  const isMapped = a === 0 && b === 0 && c === 0 && d === 0 && e === 0 && f === 0xffff;
  const isNat64 = a === 0x64 && b === 0xff9b && c === 0 && d === 0 && e === 0 && f === 0;
  if (isMapped || isNat64) return [ipv4Of(g, h)];
  if (a === 0x2002) return [ipv4Of(b, c)];
  // A Teredo address contains the client's IPv4 address with inverted bits, and the server's address.
  if (a === 0x2001 && b === 0) return [ipv4Of(g ^ 0xffff, h ^ 0xffff), ipv4Of(c, d)];
  return [];
};

const ipv4Of = (high: number, low: number): ipaddr.IPv4 =>
  new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);

// Decides whether tenants' alerts may go to private addresses: `[load_balancing] alert_allow_private`.

export interface AlertSurroundings {
  /** The edge's host: values of `[server] host` and `[server] domain`. */
  readonly host: string;
  readonly domain: string;
  /** The platform's host, from `[platform] public_url`. */
  readonly publicHost: string;
  /** Addresses of trusted proxies from `[server]` and `[platform]`. */
  readonly trustedProxies: readonly string[];
}

interface PrivateAlerts {
  readonly allowed: boolean;
  /** The setting that decided whether alerts may go to private addresses, for log messages. */
  readonly because: string;
}

/**
 * "auto" allows private addresses only if every setting says that the edge serves this machine only. A single sign of other users is enough
 * to refuse.
 */
export const decidePrivateAlerts = (setting: 'auto' | boolean, around: AlertSurroundings): PrivateAlerts => {
  if (setting !== 'auto') return { allowed: setting, because: `alert_allow_private is ${setting}` };
  const { host, domain, publicHost, trustedProxies } = around;
  const refuse = (because: string): PrivateAlerts => ({ allowed: false, because });
  if (!isLoopbackHost(host)) return refuse(`[server] host is ${host}`);
  if (domain !== 'localhost') return refuse(`[server] domain is ${domain}`);
  if (!isLoopbackHost(publicHost)) return refuse(`[platform] public_url is at ${publicHost}`);
  if (trustedProxies.length > 0) return refuse('there are trusted_proxies');
  return { allowed: true, because: 'host, domain and public_url are on this machine' };
};
