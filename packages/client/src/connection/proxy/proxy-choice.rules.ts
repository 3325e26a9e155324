// Whether a connection goes through a proxy, and through which: what was set explicitly, then the variables of the environment, and whom NO_PROXY
// leaves out. Values in, a decision out; nothing is parsed of the proxy's address itself.

import { isLoopbackHost, plainAddress } from '@tunnel/rules/net';
import ipaddr from 'ipaddr.js';

export interface ProxyTarget {
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface ProxySources {
  /** By flag or by file: a URL, or `none`. Empty: nobody has said anything. */
  readonly explicit: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type ProxyChoice =
  | { readonly kind: 'direct'; readonly because: 'not-set' | 'none' | 'loopback' | 'no-proxy' }
  /** `source`: `proxy`, or the name of the variable. */
  | { readonly kind: 'proxy'; readonly url: string; readonly source: string };

/** In this order; a variable that is empty is not set. */
const VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'] as const;

/** What is set explicitly holds for every target: also for this machine, and whatever NO_PROXY says. */
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
 * Names (and what is below them), `.suffix`, `*.suffix`, addresses, networks, each of them with `:port` or without, and `*` for everything; divided by commas
 * or spaces. What is none of these matches nobody: a slip in one entry must not take the others with it.
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
  /** null: it is a name. */
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
  // An address has no names above it.
  return target.address === null && isNameOrBelow(withoutDot(pattern), target.host);
};

/** `host:port`, `[::1]:port`; a bare IPv6 address has colons and no port. */
const splitEntry = (entry: string): { readonly pattern: string; readonly port: number | null } => {
  const [, bracketed, behind = ''] = /^\[([^\]]*)\](.*)$/.exec(entry) ?? [];
  const colons = entry.split(':').length - 1;
  if (bracketed === undefined && colons !== 1) return { pattern: entry, port: null };
  const colon = entry.indexOf(':');
  const pattern = bracketed ?? entry.slice(0, colon);
  const portText = bracketed === undefined ? entry.slice(colon + 1) : behind.replace(/^:/, '');
  // `[fd00::]/8` is written by some for a network.
  if (bracketed !== undefined && behind.startsWith('/')) return { pattern: pattern + behind, port: null };
  if (portText === '') return { pattern, port: null };
  return { pattern, port: /^\d{1,5}$/.test(portText) ? Number(portText) : Number.NaN };
};

const isInNetwork = (pattern: string, address: KnownTarget['address']): boolean => {
  if (address === null || !ipaddr.isValidCIDR(pattern)) return false;
  const [network, bits] = ipaddr.parseCIDR(pattern);
  return network.kind() === address.kind() && address.match([network, bits] as never);
};

/** Both `example.com` and `.example.com` stand for the name and all below it, as curl and most others have it. */
const isNameOrBelow = (pattern: string, host: string): boolean => {
  const name = pattern.replace(/^\*?\./, '');
  return name !== '' && (host === name || host.endsWith(`.${name}`));
};

/** ipaddr.js also reads `10` and `0x7f.1`; who writes a name of digits means a name. */
const isUsualAddress = (text: string): boolean => text.includes(':') || ipaddr.IPv4.isValidFourPartDecimal(text);

const withoutDot = (name: string): string => name.replace(/\.$/, '');
