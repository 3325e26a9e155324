// Decides whether a connection uses a proxy, and which: the explicit setting first, then the environment variables, minus the exceptions in
// NO_PROXY. Pure decision; the proxy's URL is not parsed here.

import { isLoopbackHost, plainAddress } from '@tunnel/rules/net';
import ipaddr from 'ipaddr.js';

export interface ProxyTarget {
  /** Host name or IP address of the server to reach, without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface ProxySources {
  /** Value of the flag or the config file: a URL or `none`. Empty if not set. */
  readonly explicit: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type ProxyChoice =
  | { readonly kind: 'direct'; readonly because: 'not-set' | 'none' | 'loopback' | 'no-proxy' }
  /** The proxy to use. `source` is `proxy` or the name of the environment variable with the URL. */
  | { readonly kind: 'proxy'; readonly url: string; readonly source: string };

/** Environment variables with a proxy URL, by precedence. An empty variable counts as not set. */
const VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'] as const;

/** Chooses the proxy for a target. An explicit proxy applies to every target, even on this machine, and ignores NO_PROXY. */
export const chooseProxy = ({ env, ...given }: ProxySources, target: ProxyTarget): ProxyChoice => {
  const explicit = given.explicit.trim();
  if (explicit.toLowerCase() === 'none') return { kind: 'direct', because: 'none' };
  if (explicit !== '') return { kind: 'proxy', url: explicit, source: 'proxy' };
  const source = VARIABLES.find((name) => (env[name] ?? '').trim() !== '');
  if (source === undefined) return { kind: 'direct', because: 'not-set' };
  if (isLoopbackHost(plainAddress(target.host))) return { kind: 'direct', because: 'loopback' };
  if (bypassesProxy(firstSet(env['NO_PROXY'], env['no_proxy']), target)) return { kind: 'direct', because: 'no-proxy' };
  return { kind: 'proxy', url: (env[source] ?? '').trim(), source };
};

const firstSet = (...values: readonly (string | undefined)[]): string =>
  values.find((value) => (value ?? '').trim() !== '') ?? '';

/**
 * Matches a target against NO_PROXY, a list separated by commas or spaces. Entries are names (including subdomains), `.suffix`, `*.suffix`,
 * addresses and networks, optionally with `:port`, or `*` for everything. An invalid entry matches no target, so that a typo does not
 * disable the remaining entries.
 */
export const bypassesProxy = (noProxy: string, target: ProxyTarget): boolean => {
  const host = plainAddress(withoutDot(target.host.toLowerCase()));
  const address = ipaddr.isValid(host) && isUsualAddress(host) ? ipaddr.parse(host) : null;
  return noProxy
    .split(/[\s,]+/)
    .some((entry) => entry !== '' && matches(entry.toLowerCase(), { host, address, port: target.port }));
};

interface KnownTarget {
  readonly host: string;
  /** IP address of the target server. Null if the target is a name. */
  readonly address: ipaddr.IPv4 | ipaddr.IPv6 | null;
  readonly port: number;
}

const matches = (entry: string, target: KnownTarget): boolean => {
  if (entry === '*') return true;
  const { pattern, port } = splitEntry(entry);
  if (port !== null && port !== target.port) return false;
  if (pattern === '*') return true;
  if (pattern.includes('/')) return isInNetwork(pattern, target.address);
  if (ipaddr.isValid(pattern) && isUsualAddress(pattern)) {
    return target.address !== null && ipaddr.parse(plainAddress(pattern)).toString() === target.address.toString();
  }
  // Name patterns in NO_PROXY never match an IP address.
  return target.address === null && isNameOrBelow(withoutDot(pattern), target.host);
};

/** Splits `host:port` and `[::1]:port`. A bare IPv6 address has colons but no port. */
const splitEntry = (entry: string): { readonly pattern: string; readonly port: number | null } => {
  const [, bracketed, behind = ''] = /^\[([^\]]*)\](.*)$/.exec(entry) ?? [];
  const colons = entry.split(':').length - 1;
  if (bracketed === undefined && colons !== 1) return { pattern: entry, port: null };
  const colon = entry.indexOf(':');
  const pattern = bracketed ?? entry.slice(0, colon);
  const portText = bracketed === undefined ? entry.slice(colon + 1) : behind.replace(/^:/, '');
  // `[fd00::]/8` is a common spelling of a network in NO_PROXY.
  if (bracketed !== undefined && behind.startsWith('/')) return { pattern: pattern + behind, port: null };
  if (portText === '') return { pattern, port: null };
  return { pattern, port: /^\d{1,5}$/.test(portText) ? Number(portText) : Number.NaN };
};

const isInNetwork = (pattern: string, address: KnownTarget['address']): boolean => {
  if (address === null || !ipaddr.isValidCIDR(pattern)) return false;
  const [network, bits] = ipaddr.parseCIDR(pattern);
  return network.kind() === address.kind() && address.match([network, bits] as never);
};

/** `example.com` and `.example.com` both match the name and its subdomains, as in curl. */
const isNameOrBelow = (pattern: string, host: string): boolean => {
  const name = pattern.replace(/^\*?\./, '');
  return name !== '' && (host === name || host.endsWith(`.${name}`));
};

/** ipaddr.js parses `10` and `0x7f.1` as addresses too, but in NO_PROXY an entry of digits means a name. */
const isUsualAddress = (text: string): boolean => text.includes(':') || ipaddr.IPv4.isValidFourPartDecimal(text);

const withoutDot = (name: string): string => name.replace(/\.$/, '');
