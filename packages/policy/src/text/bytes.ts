// Texts and bytes, both ways, as credentials and signatures write them: UTF-8, base64, hex. By hand: this package has only what the language has.

export const utf8Bytes = (text: string): Uint8Array => {
  const bytes: number[] = [];
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), tail(code));
    else if (code < 0x1_0000) bytes.push(0xe0 | (code >> 12), tail(code >> 6), tail(code));
    else bytes.push(0xf0 | (code >> 18), tail(code >> 12), tail(code >> 6), tail(code));
  }
  return Uint8Array.from(bytes);
};

const tail = (bits: number): number => 0x80 | (bits & 0x3f);

/** As heads and answers of our own are written: one character per byte of its UTF-8. */
export const byteText = (text: string): string => {
  if (isAscii(text)) return text;
  let out = '';
  for (const byte of utf8Bytes(text)) out += String.fromCharCode(byte);
  return out;
};

const isAscii = (text: string): boolean => {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 0x7f) return false;
  return true;
};

/** The text that these bytes, one a character, are in UTF-8; where they are none, each stands for itself (latin1). */
export const textOfBytes = (bytes: string): string => {
  if (isAscii(bytes)) return bytes;
  try {
    return decodeURIComponent(
      bytes.replace(/[^\x20-\x24\x26-\x7e]/g, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`),
    );
  } catch {
    return bytes;
  }
};

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const EQUALS = 0x3d;
/** Has a bit that no digit has, and that stays to be seen beside another digit. */
const NO_DIGIT = 0x1000;
const NO_DIGITS = NO_DIGIT | (NO_DIGIT << 6);
const DIGITS = new Uint16Array(128).fill(NO_DIGIT);
for (let value = 0; value < ALPHABET.length; value += 1) DIGITS[ALPHABET.charCodeAt(value)] = value;

const digitAt = (text: string, at: number): number => {
  const code = text.charCodeAt(at);
  return code < 128 ? (DIGITS[code] as number) : NO_DIGIT;
};

/**
 * What base64 stands for, one character per byte; null: it is none. Padding may be left out. Three characters at a time, and no array on
 * the way: with each password that a visitor sends, it is read anew.
 */
export const base64Text = (text: string): string | null => {
  let length = text.length;
  while (length > 0 && text.length - length < 2 && text.charCodeAt(length - 1) === EQUALS) length -= 1;
  const left = length % 4;
  if (left === 1) return null;
  let decoded = '';
  let at = 0;
  for (; at + 3 < length; at += 4) {
    const first = (digitAt(text, at) << 6) | digitAt(text, at + 1);
    const second = (digitAt(text, at + 2) << 6) | digitAt(text, at + 3);
    if (((first | second) & NO_DIGITS) !== 0) return null;
    decoded += String.fromCharCode(first >> 4, ((first & 15) << 4) | (second >> 8), second & 255);
  }
  if (left === 0) return decoded;
  const first = (digitAt(text, at) << 6) | digitAt(text, at + 1);
  const third = left === 3 ? digitAt(text, at + 2) : 0;
  if (((first | third) & NO_DIGITS) !== 0) return null;
  const last = String.fromCharCode(first >> 4);
  return decoded + (left === 2 ? last : last + String.fromCharCode(((first & 15) << 4) | (third >> 2)));
};

/** null: it is none. Padding may be left out. */
export const base64Bytes = (text: string): Uint8Array | null => {
  const decoded = base64Text(text);
  if (decoded === null) return null;
  const bytes = new Uint8Array(decoded.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = decoded.charCodeAt(at);
  return bytes;
};

/** The bytes of a hexadecimal text, or null for any other text. */
export const hexBytes = (text: string): Uint8Array | null => {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) return null;
  const bytes = new Uint8Array(text.length / 2);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = Number.parseInt(text.slice(at * 2, at * 2 + 2), 16);
  return bytes;
};
