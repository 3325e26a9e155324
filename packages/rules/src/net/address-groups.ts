// Parses IPv4 and IPv6 addresses by hand, because policies read the visitor's address for every request.

const DOT = 0x2e;
const COLON = 0x3a;
const ZERO = 0x30;

/** The eight groups of an IPv6 address, 16 bits each. */
export type AddressGroups = readonly number[];

/**
 * Parses an IPv4 address between two positions as a 32-bit number, or returns -1. Leading zeros are rejected, because some programs read
 * them as octal.
 */
export const readV4 = (text: string, from = 0, end = text.length): number => {
  let at = from;
  let address = 0;
  for (let part = 0; part < 4; part += 1) {
    const begin = at;
    let value = 0;
    for (let code = text.charCodeAt(at); at < end && code >= ZERO && code <= 0x39; code = text.charCodeAt(at)) {
      value = value * 10 + code - ZERO;
      at += 1;
      if (at - begin > 3) return -1;
    }
    if (at === begin || value > 255 || (text.charCodeAt(begin) === ZERO && at - begin > 1)) return -1;
    if (part < 3 && (at >= end || text.charCodeAt(at) !== DOT)) return -1;
    if (part < 3) at += 1;
    address = address * 256 + value;
  }
  return at === end ? address : -1;
};

/**
 * Parses an IPv6 address: eight groups, or fewer with one `::`; the last two may be an IPv4 address. Returns null for any other text. A
 * zone (`%eth0`) is ignored: it names a network interface, not the visitor.
 */
export const readV6 = (text: string): AddressGroups | null => {
  const zone = text.indexOf('%');
  const end = zone === -1 ? text.length : zone;
  const groups = [0, 0, 0, 0, 0, 0, 0, 0];
  let at = 0;
  let count = 0;
  let gap = -1;
  if (text.startsWith('::')) {
    gap = 0;
    at = 2;
  }
  while (at < end) {
    if (count === 8) return null;
    let next = at;
    let value = 0;
    for (let digit = hexDigit(text, next, end); digit !== -1; digit = hexDigit(text, next, end)) {
      value = (value << 4) | digit;
      next += 1;
    }
    if (next < end && text.charCodeAt(next) === DOT) {
      const v4 = count > 6 ? -1 : readV4(text, at, end);
      if (v4 === -1) return null;
      groups[count] = v4 >>> 16;
      groups[count + 1] = v4 & 0xffff;
      count += 2;
      break;
    }
    if (next === at || next - at > 4) return null;
    groups[count] = value;
    count += 1;
    at = next;
    if (at === end) break;
    if (text.charCodeAt(at) !== COLON) return null;
    at += 1;
    if (at < end && text.charCodeAt(at) === COLON) {
      if (gap !== -1) return null;
      gap = count;
      at += 1;
    } else if (at === end) return null;
  }
  return spread(groups, count, gap);
};

/** Returns -1 at the end of the address and for any other character. */
const hexDigit = (text: string, at: number, end: number): number => {
  if (at >= end) return -1;
  const code = text.charCodeAt(at);
  if (code >= ZERO && code <= 0x39) return code - ZERO;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
};

/** Moves the groups after `::` to the end, with zeros in the gap. */
const spread = (groups: number[], count: number, gap: number): AddressGroups | null => {
  if (gap === -1) return count === 8 ? groups : null;
  if (count === 8) return null;
  const missing = 8 - count;
  for (let index = count - 1; index >= gap; index -= 1) groups[index + missing] = groups[index] as number;
  groups.fill(0, gap, gap + missing);
  return groups;
};

/** Returns two neighboring groups of an IPv6 address as a 32-bit number. */
export const wordAt = (groups: AddressGroups, group: number): number =>
  (groups[group] as number) * 0x10000 + (groups[group + 1] as number);

/** The IPv4 address in an IPv4-mapped IPv6 address (`::ffff:192.0.2.7`) as a 32-bit number, or -1. */
export const mappedV4 = (groups: AddressGroups): number => {
  if (groups[5] !== 0xffff) return -1;
  for (let index = 0; index < 5; index += 1) if (groups[index] !== 0) return -1;
  return wordAt(groups, 6);
};
