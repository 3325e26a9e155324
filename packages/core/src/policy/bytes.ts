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

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const VALUES = new Map([...ALPHABET].map((character, value) => [character, value]));

/** null: it is none. Padding may be left out. */
export const base64Bytes = (text: string): Uint8Array | null => {
  if (!BASE64.test(text)) return null;
  const digits = text.replace(/=+$/, '');
  if (digits.length % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((digits.length * 3) / 4));
  let bits = 0;
  let held = 0;
  let at = 0;
  for (const digit of digits) {
    held = ((held << 6) | (VALUES.get(digit) ?? 0)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[at] = (held >> bits) & 0xff;
    at += 1;
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
