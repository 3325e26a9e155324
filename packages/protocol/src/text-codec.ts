// UTF-8 encoding and decoding, cutting of texts, and parsing of untrusted JSON. TextEncoder and TextDecoder exist in all supported
// runtimes; this package uses no other globals.
declare class TextEncoder {
  encode(text: string): Uint8Array<ArrayBuffer>;
}
declare class TextDecoder {
  constructor(label: 'utf-8', options: { fatal: boolean });
  decode(bytes: Uint8Array): string;
}

const encoder = new TextEncoder();
const strict = new TextDecoder('utf-8', { fatal: true });
const lenient = new TextDecoder('utf-8', { fatal: false });

export const encodeText = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text);

/** Decodes UTF-8 and replaces invalid bytes with U+FFFD, for reasons shown to people. */
export const decodeTextLoosely = (bytes: Uint8Array): string => lenient.decode(bytes);

/** Decodes UTF-8. Returns null if the bytes are invalid. */
export const decodeText = (bytes: Uint8Array): string | null => {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
};

/** Returns true if `text` has more than `limit` bytes in UTF-8. Encodes the text only if its length does not decide. */
export const isLongerThan = (text: string, limit: number): boolean =>
  text.length > limit || (text.length * 3 > limit && encodeText(text).length > limit);

/** Encodes a text as at most `maxBytes` of UTF-8, cut between two characters. */
export const encodeTextCut = (text: string, maxBytes: number): Uint8Array => {
  // A character has at least one byte, so characters beyond `maxBytes` cannot fit.
  const bytes = encodeText(text.slice(0, maxBytes));
  if (bytes.length <= maxBytes) return bytes;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end);
};

/** Cuts a text to at most `maxLength` UTF-16 units, never within a surrogate pair. */
export const cutText = (text: string, maxLength: number): string => {
  if (text.length <= maxLength) return text;
  const last = text.charCodeAt(maxLength - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? maxLength - 1 : maxLength);
};

/** Parses a text as JSON. Returns undefined if it is invalid. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};
