// Addresses and networks of a rule: sorted ranges with binary search, so that a thousand networks cost as much as one. IPv4-mapped
// addresses count as IPv4.
import { type AddressGroups, mappedV4, readV4, readV6, wordAt } from '@tunnel/rules/net';

const V4 = 4;
const V6 = 6;
type Family = typeof V4 | typeof V6;

export class NetworkSet {
  /** Pairs of first and last address, ascending and without touching ranges: first IPv4 (one word per address), then IPv6 (four words). */
  readonly #words: Uint32Array;
  readonly #v4Words: number;

  /** Creates a set of addresses and networks. Ignores entries that `problemOfNetwork` rejects. */
  constructor(networks: readonly string[]) {
    const ranges = networks.flatMap((text) => rangeOf(text) ?? []);
    const v4 = wordsOf(ranges, V4);
    // A single array for both families, because the overhead of a typed array exceeds the size of a short list.
    this.#words = Uint32Array.from([...v4, ...wordsOf(ranges, V6)]);
    this.#v4Words = v4.length;
  }

  /** Returns whether the set contains the address. Returns false for a text that is no address. */
  has(address: string): boolean {
    if (!address.includes(':')) return hasV4(this.#words, this.#v4Words, readV4(address));
    const groups = readV6(address);
    if (groups === null) return false;
    const v4 = mappedV4(groups);
    return v4 === -1 ? hasV6(this.#words, this.#v4Words, groups) : hasV4(this.#words, this.#v4Words, v4);
  }
}

/** Checks an entry of an address list. Returns an error message, or null for a valid address or network. */
export const problemOfNetwork = (text: string): string | null => {
  const slash = text.indexOf('/');
  const family = familyOf(slash === -1 ? text : text.slice(0, slash));
  if (text.includes('%')) return 'addresses cannot have a zone';
  if (family === null) return 'not an address or a network, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32';
  if (slash === -1) return null;
  const isMapped = family === V4 && text.includes(':');
  const [from, to] = boundsOf(family, isMapped);
  const bits = bitsOf(text, slash, from, to);
  if (bits !== null) return null;
  return isMapped
    ? 'the prefix of a v4-mapped network must be 96 to 128'
    : `the prefix of an IPv${family} network is 0 to ${to}`;
};

/** Returns null for a text that is no address. An IPv4-mapped address counts as IPv4. */
const familyOf = (address: string): Family | null => {
  if (!address.includes(':')) return readV4(address) === -1 ? null : V4;
  const groups = readV6(address);
  if (groups === null) return null;
  return mappedV4(groups) === -1 ? V6 : V4;
};

const boundsOf = (family: Family, isMapped: boolean): readonly [number, number] => {
  if (isMapped) return [96, 128];
  return family === V4 ? [0, 32] : [0, 128];
};

/** Prefix length: digits without sign, blank or leading zero, so that all programs read the same number. */
const bitsOf = (text: string, slash: number, from: number, to: number): number | null => {
  const digits = text.slice(slash + 1);
  const bits = /^(?:0|[1-9]\d{0,2})$/.test(digits) ? Number(digits) : Number.NaN;
  return bits >= from && bits <= to ? bits : null;
};

// ---- ranges ----

interface Range {
  readonly family: Family;
  readonly first: bigint;
  readonly last: bigint;
}

const rangeOf = (text: string): Range | null => {
  if (problemOfNetwork(text) !== null) return null;
  const slash = text.indexOf('/');
  const address = slash === -1 ? text : text.slice(0, slash);
  const groups = address.includes(':') ? (readV6(address) ?? []) : [];
  const family = groups.length === 0 || mappedV4(groups) !== -1 ? V4 : V6;
  const isMapped = family === V4 && groups.length > 0;
  const width = family === V4 ? 32n : 128n;
  const value =
    family === V4
      ? BigInt(isMapped ? mappedV4(groups) : readV4(address))
      : groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
  const bits = slash === -1 ? width : BigInt(Number(text.slice(slash + 1)) - (isMapped ? 96 : 0));
  const hosts = (1n << (width - bits)) - 1n;
  return { family, first: value & ~hosts, last: value | hosts };
};

const wordsOf = (ranges: readonly Range[], family: Range['family']): number[] => {
  const merged: { first: bigint; last: bigint }[] = [];
  const sorted = ranges.filter((range) => range.family === family);
  for (const { first, last } of sorted.sort((a, b) => (a.first < b.first ? -1 : Number(a.first > b.first)))) {
    const before = merged.at(-1);
    if (before === undefined || first > before.last + 1n) merged.push({ first, last });
    else if (last > before.last) before.last = last;
  }
  const width = family === V6 ? 4 : 1;
  return merged.flatMap(({ first, last }) => [...inWords(first, width), ...inWords(last, width)]);
};

const inWords = (value: bigint, width: number): number[] =>
  Array.from({ length: width }, (_, index) => Number((value >> BigInt(32 * (width - 1 - index))) & 0xffffffffn));

/** Searches the address in the sorted IPv4 ranges: only the last range that begins at or before the address can contain it. */
const hasV4 = (ranges: Uint32Array, words: number, address: number): boolean => {
  let low = 0;
  let high = words / 2;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ranges[middle * 2] as number) <= address) low = middle + 1;
    else high = middle;
  }
  return low > 0 && address <= (ranges[low * 2 - 1] as number);
};

/** Searches the address in the sorted IPv6 ranges, which begin at `from`. */
const hasV6 = (ranges: Uint32Array, from: number, address: AddressGroups): boolean => {
  let low = 0;
  let high = (ranges.length - from) / 8;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareAt(ranges, from + middle * 8, address) >= 0) low = middle + 1;
    else high = middle;
  }
  return low > 0 && compareAt(ranges, from + low * 8 - 4, address) <= 0;
};

/** Compares the address with the number at `at`: below zero, zero or above zero. */
const compareAt = (ranges: Uint32Array, at: number, address: AddressGroups): number => {
  for (let word = 0; word < 4; word += 1) {
    const difference = wordAt(address, word * 2) - (ranges[at + word] as number);
    if (difference !== 0) return difference;
  }
  return 0;
};
