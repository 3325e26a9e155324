// Reads addresses of both families, by hand and into memory that is there: rules ask with each request.

/** The eight groups of the address that was read last; of an IPv4 one the last two. */
export const groups: Uint16Array = new Uint16Array(8);

export const NOT_AN_ADDRESS = 0;
export const V4 = 4;
export const V6 = 6;
export type AddressFamily = typeof NOT_AN_ADDRESS | typeof V4 | typeof V6;

const DOT = 0x2e;
const COLON = 0x3a;
const ZERO = 0x30;

/** Whose groups these are, so that rules which ask for the same address one after the other have it read once. */
let readLast = '';
let familyOfLast: AddressFamily = NOT_AN_ADDRESS;

/** Into `groups`; v4-mapped ones are v4. */
export const readAddress = (address: string): AddressFamily => {
  if (address === readLast) return familyOfLast;
  familyOfLast = readAnew(address);
  readLast = address;
  return familyOfLast;
};

/** A zone is passed over: it says which wire, not who. */
const readAnew = (address: string): AddressFamily => {
  const zone = address.indexOf('%');
  const end = zone === -1 ? address.length : zone;
  if (!address.includes(':')) return zone === -1 && readV4(address, 0, end, 6) ? V4 : NOT_AN_ADDRESS;
  if (!readV6(address, end)) return NOT_AN_ADDRESS;
  for (let index = 0; index < 5; index += 1) if (groups[index] !== 0) return V6;
  return groups[5] === 0xffff ? V4 : V6;
};

/** Four decimal numbers, none with a zero in front, which others read as octal. */
const readV4 = (text: string, from: number, end: number, into: number): boolean => {
  let at = from;
  for (let part = 0; part < 4; part += 1) {
    const begin = at;
    let value = 0;
    for (let code = text.charCodeAt(at); at < end && code >= ZERO && code <= 0x39; code = text.charCodeAt(at)) {
      value = value * 10 + code - ZERO;
      at += 1;
      if (at - begin > 3) return false;
    }
    if (at === begin || value > 255 || (text.charCodeAt(begin) === ZERO && at - begin > 1)) return false;
    if (part < 3 && (at >= end || text.charCodeAt(at) !== DOT)) return false;
    if (part < 3) at += 1;
    const group = into + (part >> 1);
    groups[group] = part % 2 === 0 ? value << 8 : (groups[group] as number) | value;
  }
  return at === end;
};

/** Eight groups, or fewer with one `::`; the last two may be written as an IPv4 address. */
const readV6 = (text: string, end: number): boolean => {
  let at = 0;
  let count = 0;
  let gap = -1;
  if (text.startsWith('::')) {
    gap = 0;
    at = 2;
  }
  while (at < end) {
    if (count === 8) return false;
    const next = groupEnd(text, at, end);
    if (next < end && text.charCodeAt(next) === DOT) {
      if (count > 6 || !readV4(text, at, end, count)) return false;
      count += 2;
      at = end;
      break;
    }
    if (next === at || next - at > 4) return false;
    groups[count] = Number.parseInt(text.slice(at, next), 16);
    count += 1;
    at = next;
    if (at === end) break;
    if (text.charCodeAt(at) !== COLON) return false;
    at += 1;
    if (at < end && text.charCodeAt(at) === COLON) {
      if (gap !== -1) return false;
      gap = count;
      at += 1;
    } else if (at === end) return false;
  }
  return spread(count, gap);
};

const groupEnd = (text: string, from: number, end: number): number => {
  let at = from;
  while (at < end) {
    const code = text.charCodeAt(at);
    const isHex = (code >= ZERO && code <= 0x39) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66);
    if (!isHex) break;
    at += 1;
  }
  return at;
};

/** Zeros where `::` stands. */
const spread = (count: number, gap: number): boolean => {
  if (gap === -1) return count === 8;
  if (count === 8) return false;
  const missing = 8 - count;
  for (let index = count - 1; index >= gap; index -= 1) groups[index + missing] = groups[index] as number;
  groups.fill(0, gap, gap + missing);
  return true;
};
