// Texts and bytes, both ways, as credentials and signatures write them: UTF-8, base64, hex. By hand: the core has only what the language has.

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
const NO_DIGIT = 64;
const DIGITS = new Uint8Array(256).fill(NO_DIGIT);
for (let value = 0; value < ALPHABET.length; value += 1) DIGITS[ALPHABET.charCodeAt(value)] = value;

/** null: it is none. Padding may be left out. By a table: with each password that a visitor sends, it is read anew. */
export const base64Bytes = (text: string): Uint8Array | null => {
  let length = text.length;
  while (length > 0 && text.length - length < 2 && text.charCodeAt(length - 1) === EQUALS) length -= 1;
  if (length % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  let bits = 0;
  let held = 0;
  let to = 0;
  for (let at = 0; at < length; at += 1) {
    const digit = DIGITS[text.charCodeAt(at)] ?? NO_DIGIT;
    if (digit === NO_DIGIT) return null;
    held = ((held << 6) | digit) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[to] = (held >> bits) & 0xff;
    to += 1;
  }
  return bytes;
};

/** null: it is none. */
export const hexBytes = (text: string): Uint8Array | null => {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) return null;
  const bytes = new Uint8Array(text.length / 2);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = Number.parseInt(text.slice(at * 2, at * 2 + 2), 16);
  return bytes;
};
