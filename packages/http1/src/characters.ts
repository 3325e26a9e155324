// What each byte may be in a message: one table, so that a scan is a load and a mask per byte. And the texts made of them: tokens, lists, latin1.

export const TOKEN = 1;
/** Field values and reason phrases: HTAB, SP, visible ASCII and obs-text (RFC 9110, 5.5). Not DEL, CR, LF, NUL. */
export const VALUE = 2;
/** Visible ASCII but `#`: a fragment has no place in a request (RFC 9112, 3.2) and is cut off by some servers, kept by others. */
export const TARGET = 4;
/** Names as DNS has them, and `_`. Narrower than a URI's reg-name: nothing else can be routed. */
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

/** The class bits of a character by its code. A code beyond latin1 finds nothing (`undefined & mask` is 0), and so belongs to no class. */
export const CHAR_CLASSES: ArrayLike<number> = classes;

/** The class bits of the character at `at`; none beyond the end. */
export const classAt = (text: string, at: number): number => CHAR_CLASSES[text.charCodeAt(at)] as number;

export const isToken = (text: string): boolean => text.length > 0 && isAll(text, TOKEN);

/** Can stand in a field's value without ending it: no CR, LF, NUL or other control character. */
export const isFieldValue = (text: string): boolean => isAll(text, VALUE);

/** Visible ASCII, at least one character, no `#`: what may stand in a request line or an authority. */
export const isVisible = (text: string): boolean => text.length > 0 && isAll(text, TARGET);

const isAll = (text: string, mask: number): boolean => {
  for (let at = 0; at < text.length; at += 1) {
    if ((classAt(text, at) & mask) === 0) return false;
  }
  return true;
};

/** Comma-separated field values (RFC 9110, 5.6.1): items without the blanks around them, empty ones left out. */
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

/** Arguments of one call: the engine's own limit is some hundred thousand. */
const STEP = 4096;

/** Bytes as text, one character per byte: for the few short pieces that are not handed over as text already. */
export const latin1Text = (bytes: Uint8Array, start: number, end: number): string => {
  let text = '';
  for (let at = start; at < end; at += STEP) {
    text += String.fromCharCode(...bytes.subarray(at, Math.min(end, at + STEP)));
  }
  return text;
};
