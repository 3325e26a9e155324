// Decodes percent-encoding once, as a service does. Encoded separators stay encoded, because services disagree on whether they separate.

const PERCENT = 0x25;
const SLASH = 0x2f;
const BACKSLASH = 0x5c;

/** Value of a hexadecimal digit, or -1 for any other character. */
const digitOf = (code: number): number => {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
};

/** Returns the byte encoded as `%xx` at position `at` of the text, or -1. */
const byteAt = (text: string, at: number): number => {
  if (text.charCodeAt(at) !== PERCENT) return -1;
  const high = digitOf(text.charCodeAt(at + 1));
  const low = digitOf(text.charCodeAt(at + 2));
  return high === -1 || low === -1 ? -1 : high * 16 + low;
};

/** Length of a UTF-8 sequence with this first byte, or 0 for an invalid first byte. */
const lengthOf = (first: number): number => {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
};

/** Code point of the encoded UTF-8 sequence at `at`, or -1 for invalid UTF-8: overlong forms, surrogates, and values beyond Unicode. */
const codePointAt = (text: string, at: number, first: number): number => {
  const length = lengthOf(first);
  if (length === 0) return -1;
  let point = first & (0x7f >> length);
  for (let index = 1; index < length; index += 1) {
    const next = byteAt(text, at + index * 3);
    if (next < 0x80 || next > 0xbf) return -1;
    point = point * 64 + (next & 0x3f);
  }
  const isOverlong = (length === 3 && point < 0x800) || (length === 4 && point < 0x10000);
  return isOverlong || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ? -1 : point;
};

/**
 * Decodes every `%xx` once, as UTF-8 where valid. `%2f` and `%5c` stay encoded in lower case, and invalid sequences stay as they are, so
 * that decoding never adds a separator.
 */
export const decodeOnce = (text: string): string => {
  let at = text.indexOf('%');
  if (at === -1) return text;
  let decoded = '';
  let from = 0;
  while (at !== -1) {
    const byte = byteAt(text, at);
    const point = byte < 0x80 ? byte : codePointAt(text, at, byte);
    const length = point < 0x80 ? 3 : lengthOf(byte) * 3;
    if (point === SLASH || point === BACKSLASH) {
      decoded += text.slice(from, at) + text.slice(at, at + 3).toLowerCase();
      from = at + 3;
    } else if (point !== -1) {
      decoded += text.slice(from, at) + String.fromCodePoint(point);
      from = at + length;
    }
    at = text.indexOf('%', Math.max(from, at + 1));
  }
  return decoded + text.slice(from);
};

const ASCII = /^[\x00-\x7f]*$/;

/**
 * Folds case per character, because a wildcard may stand on either side. Beyond ASCII the folding is as coarse as the coarsest service:
 * comparison in upper case equates `ı` with `i` and `ſ` with `s`, as do case-insensitive expressions in Python and Ruby; file systems
 * equate composed and decomposed `é`. Folding never adds a separator. JavaScript lower-cases a final sigma differently, so both forms are
 * unified.
 */
export const foldCase = (text: string): string => {
  if (ASCII.test(text)) return text.toLowerCase();
  let plain = '';
  for (const character of text) plain += plainOf(character);
  // NFD puts combining marks into canonical order, because texts may list them in a different order.
  return plain
    .replace(MARKS, '$1')
    .normalize('NFD')
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .normalize('NFD');
};

const UNSEEN = /\p{Default_Ignorable_Code_Point}/u;

/** Maximum expansion of a character. Some compatibility characters expand to phrases of eighteen characters. */
const PLAIN_MAX = 8;

const plainOf = (character: string): string => {
  // The letter `İ` is mapped to `i`, because its decomposition would be an `i` with a dot above.
  if (character === 'İ') return 'i';
  // Removes invisible characters, because some file systems ignore them in names.
  if (UNSEEN.test(character)) return '';
  const plain = character.normalize('NFKD');
  return plain.includes('/') || plain.length > PLAIN_MAX ? character : plain;
};

/** Limits combining marks to 32 in a row, because sorting them takes quadratic time and blocks the event loop. */
const MARKS = /(\p{Mark}{32})\p{Mark}+/gu;
