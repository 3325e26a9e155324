// Text and bytes: UTF-8 both ways, texts cut where a bound wants it, JSON of strangers.
// TextEncoder and TextDecoder exist in every runtime we meet; this package knows no other global.
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

/** Broken UTF-8 becomes U+FFFD: for reasons that people read. */
export const decodeTextLoosely = (bytes: Uint8Array): string => lenient.decode(bytes);

/** null for broken UTF-8. */
export const decodeText = (bytes: Uint8Array): string | null => {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
};

/** Whether the UTF-8 form of `text` is over `limit` bytes; it is encoded only when its length alone does not tell on which side of `limit` it is. */
export const isLongerThan = (text: string, limit: number): boolean =>
  text.length > limit || (text.length * 3 > limit && encodeText(text).length > limit);

/** At most `maxBytes` of UTF-8, cut between two characters. */
export const encodeTextCut = (text: string, maxBytes: number): Uint8Array => {
  // One character is at least one byte: what lies behind cannot fit, however long the text is.
  const bytes = encodeText(text.slice(0, maxBytes));
  if (bytes.length <= maxBytes) return bytes;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end);
};

/** At most `maxLength` UTF-16 units, never half of a pair. */
export const cutText = (text: string, maxLength: number): string => {
  if (text.length <= maxLength) return text;
  const last = text.charCodeAt(maxLength - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? maxLength - 1 : maxLength);
};

/** undefined for what is not JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};
