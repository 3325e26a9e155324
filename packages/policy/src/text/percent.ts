// Percent-encoding undone once, as a service does it. Encoded separators stay encoded: whether they separate is a question of its own.

const PERCENT = 0x25;
const SLASH = 0x2f;
const BACKSLASH = 0x5c;

/** Of one hexadecimal digit; -1: it is none. */
const digitOf = (code: number): number => {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
};

/** The byte that `%xx` at `at` stands for; -1: there is none. */
const byteAt = (text: string, at: number): number => {
  if (text.charCodeAt(at) !== PERCENT) return -1;
  const high = digitOf(text.charCodeAt(at + 1));
  const low = digitOf(text.charCodeAt(at + 2));
  return high === -1 || low === -1 ? -1 : high * 16 + low;
};

/** How many bytes a character of UTF-8 has that begins with this one; 0: none begins so. */
const lengthOf = (first: number): number => {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
};

/** The character whose encoded bytes begin at `at`; -1: they are no UTF-8. Overlong forms, surrogates and what is beyond Unicode are none. */
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
 * Each `%xx` once; UTF-8 where the bytes are. `%2f` and `%5c` stay, in lower case, and so does what stands for nothing: no text that is
 * decoded has a separator more than it had before.
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
 * In lower case, each character by itself: a wildcard may stand on either side of it. Beyond ASCII as coarse as the coarsest service: one that compares
 * in upper case takes `ı` for `i` and `ſ` for `s`, as do expressions of Python and Ruby that overlook case; file systems take `é` of one character
 * and of two for the same name. No text has a separator more than it had before. JavaScript writes a sigma at a word's end otherwise.
 */
export const foldCase = (text: string): string => {
  if (ASCII.test(text)) return text.toLowerCase();
  let plain = '';
  for (const character of text) plain += plainOf(character);
  // Marks in the order that says the same: some write a dot below first.
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

/** Some characters are whole phrases: a path of them would be eighteen times as long. */
const PLAIN_MAX = 8;

const plainOf = (character: string): string => {
  // It would become an `i` and a dot above.
  if (character === 'İ') return 'i';
  // Nobody sees it, and some file systems do not either.
  if (UNSEEN.test(character)) return '';
  const plain = character.normalize('NFKD');
  return plain.includes('/') || plain.length > PLAIN_MAX ? character : plain;
};

/** No letter of a name has so many, and to sort them costs the square of their number, in one turn. */
const MARKS = /(\p{Mark}{32})\p{Mark}+/gu;
