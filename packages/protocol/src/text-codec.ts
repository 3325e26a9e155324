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
