// Names that people choose and other people read: of characters that can be printed, and not too many of them.

/** Control, format, surrogate, private and unassigned characters, line and paragraph separators. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

const SHOWN_CHARACTERS = 40;

/** null: nothing to object to. */
export const problemOfText = (text: string, maxCharacters: number): string | null => {
  const characters = [...text].length;
  if (characters === 0) return 'it is empty';
  if (characters > maxCharacters) return `it is longer than ${maxCharacters} characters`;
  return text.search(UNPRINTABLE) === -1 ? null : 'it has characters that cannot be printed';
};

/** A refused name goes into a line for people: no character of it may break that line. */
export const shownText = (text: string): string =>
  [...text].slice(0, SHOWN_CHARACTERS).join('').replace(UNPRINTABLE, '?');
