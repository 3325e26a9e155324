// Conversions between text and bytes for credentials and signatures: UTF-8, base64, hex. Written by hand, because this package uses only
// the language.

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

/** Encodes text as one character per UTF-8 byte, the form of heads and edge responses. */
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

/** Decodes a text with one character per byte as UTF-8. Invalid UTF-8 is returned unchanged (Latin-1). */
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
/** A bit outside the range of digits that remains visible in a combined value. */
const NO_DIGIT = 0x1000;
const NO_DIGITS = NO_DIGIT | (NO_DIGIT << 6);
const DIGITS = new Uint16Array(128).fill(NO_DIGIT);
for (let value = 0; value < ALPHABET.length; value += 1) DIGITS[ALPHABET.charCodeAt(value)] = value;

const digitAt = (text: string, at: number): number => {
  const code = text.charCodeAt(at);
  return code < 128 ? (DIGITS[code] as number) : NO_DIGIT;
};

/**
 * Decodes base64 to one character per byte, or returns null if invalid. Padding is optional. Decodes three bytes at a time without an
 * array, because every request with a password needs it.
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

/** Decodes base64, or returns null if invalid. Padding is optional. */
export const base64Bytes = (text: string): Uint8Array | null => {
  const decoded = base64Text(text);
  if (decoded === null) return null;
  const bytes = new Uint8Array(decoded.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = decoded.charCodeAt(at);
  return bytes;
};

/** Decodes hexadecimal text, or returns null if invalid. */
export const hexBytes = (text: string): Uint8Array | null => {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) return null;
  const bytes = new Uint8Array(text.length / 2);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = Number.parseInt(text.slice(at * 2, at * 2 + 2), 16);
  return bytes;
};
