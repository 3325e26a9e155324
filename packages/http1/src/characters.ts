// Character classes of HTTP messages, in a single table, so that a scan needs one load and one mask per byte. Also helpers for texts made
// of these classes: tokens, lists, latin1.

export const TOKEN = 1;
/**
 * Characters of field values and reason phrases: HTAB, SP, visible ASCII and obs-text (RFC 9110, 5.5). DEL, CR, LF and NUL are excluded.
 */
export const VALUE = 2;
/**
 * Characters of a request target: visible ASCII except `#`. A fragment is not allowed in a request (RFC 9112, 3.2); some servers cut it
 * off, and some servers keep it.
 */
export const TARGET = 4;
/** Characters of a host: the characters of DNS names, and `_`. Stricter than a URI's reg-name, because the edge routes only DNS names. */
export const HOST = 8;
export const DIGIT = 16;
export const HEX = 32;
export const UPPER = 64;
export const BLANK = 128;

export const HTAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;

const classes = new Uint8Array(256);

const mark = (characters: string, mask: number): void => {
  for (let at = 0; at < characters.length; at += 1) {
    const code = characters.charCodeAt(at);
    classes[code] = (classes[code] as number) | mask;
  }
};

const markRange = (from: number, to: number, mask: number): void => {
  for (let code = from; code <= to; code += 1) classes[code] = (classes[code] as number) | mask;
};

const DIGITS = '0123456789';
const LOWER_LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const UPPER_LETTERS = LOWER_LETTERS.toUpperCase();

mark(DIGITS + LOWER_LETTERS + UPPER_LETTERS, TOKEN | HOST);
mark("!#$%&'*+-.^_`|~", TOKEN);
mark('-._', HOST);
mark(DIGITS, DIGIT | HEX);
mark('abcdefABCDEF', HEX);
mark(UPPER_LETTERS, UPPER);
mark('\t ', BLANK | VALUE);
markRange(0x21, 0x7e, VALUE | TARGET);
markRange(0x80, 0xff, VALUE);
classes[0x23] = (classes[0x23] as number) & ~TARGET;

/** Class bits by character code. A code beyond latin1 finds no entry and belongs to no class (`undefined & mask` is 0). */
export const CHAR_CLASSES: ArrayLike<number> = classes;

/** Returns the class bits of the character at `at`, or no bits beyond the end. */
export const classAt = (text: string, at: number): number => CHAR_CLASSES[text.charCodeAt(at)] as number;

export const isToken = (text: string): boolean => text.length > 0 && isAll(text, TOKEN);

/** Returns true if the text can be a field value: without CR, LF, NUL and other control characters, the text cannot end its line. */
export const isFieldValue = (text: string): boolean => isAll(text, VALUE);

/** Returns true for a non-empty text of visible ASCII without `#`, as allowed in a request line or an authority. */
export const isVisible = (text: string): boolean => text.length > 0 && isAll(text, TARGET);

const isAll = (text: string, mask: number): boolean => {
  for (let at = 0; at < text.length; at += 1) {
    if ((classAt(text, at) & mask) === 0) return false;
  }
  return true;
};

/** Calls `visit` for every item of a comma-separated field value (RFC 9110, 5.6.1), without surrounding blanks. Empty items are skipped. */
export const eachListItem = (list: string, visit: (item: string) => void): void => {
  let from = 0;
  while (from <= list.length) {
    const comma = list.indexOf(',', from);
    const to = comma === -1 ? list.length : comma;
    const item = list.slice(from, to).trim();
    if (item !== '') visit(item);
    from = to + 1;
  }
};

/** Number of arguments per call of String.fromCharCode. The engine's limit is several hundred thousand. */
const STEP = 4096;

/** Converts bytes to text, one character per byte. Used for the few short pieces that are not received as text already. */
export const latin1Text = (bytes: Uint8Array, start: number, end: number): string => {
  let text = '';
  for (let at = start; at < end; at += STEP) {
    text += String.fromCharCode(...bytes.subarray(at, Math.min(end, at + STEP)));
  }
  return text;
};
