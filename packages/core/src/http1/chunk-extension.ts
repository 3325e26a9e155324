// The extensions of a chunk line (RFC 9112, 7.1.1), byte by byte. They are legal, mean nothing to us and end here.
import { CHAR_CLASSES, CR, TOKEN, VALUE } from './char-classes.ts';

/** `;name`, `;name=value` or `;name="quoted \" value"`, any number of times. Blanks between are "bad whitespace": refused. */
export type ExtensionState =
  | 'name-first'
  | 'name'
  | 'value-first'
  | 'value'
  | 'quoted'
  | 'quoted-pair'
  | 'after-quoted'
  /** The CR was read. */
  | 'end'
  | 'bad';

const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export const afterExtensionByte = (state: ExtensionState, byte: number): ExtensionState => {
  switch (state) {
    case 'name-first':
      return isToken(byte) ? 'name' : 'bad';
    case 'name':
      if (isToken(byte)) return 'name';
      return byte === EQUALS ? 'value-first' : afterPart(byte);
    case 'value-first':
      if (byte === QUOTE) return 'quoted';
      return isToken(byte) ? 'value' : 'bad';
    case 'value':
      return isToken(byte) ? 'value' : afterPart(byte);
    case 'quoted':
      if (byte === QUOTE) return 'after-quoted';
      if (byte === BACKSLASH) return 'quoted-pair';
      return isText(byte) ? 'quoted' : 'bad';
    case 'quoted-pair':
      return isText(byte) ? 'quoted' : 'bad';
    case 'after-quoted':
      return afterPart(byte);
    case 'end':
    case 'bad':
      return 'bad';
  }
};

const afterPart = (byte: number): ExtensionState => {
  if (byte === SEMICOLON) return 'name-first';
  return byte === CR ? 'end' : 'bad';
};

const isToken = (byte: number): boolean => ((CHAR_CLASSES[byte] as number) & TOKEN) !== 0;
const isText = (byte: number): boolean => ((CHAR_CLASSES[byte] as number) & VALUE) !== 0;
