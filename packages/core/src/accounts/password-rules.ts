// What a password must be. No kinds of characters are asked for: length is what makes one hard to guess.

const PASSWORD_MIN_CHARACTERS = 8;
const PASSWORD_MAX_BYTES = 1024;

/** null: it will do. Nothing is trimmed or folded: what was typed is the password. */
export const problemOfPassword = (password: string): string | null => {
  let characters = 0;
  let bytes = 0;
  // By code points, as people count, and by what they take in UTF-8.
  for (const character of password) {
    characters += 1;
    bytes += utf8Bytes(character.codePointAt(0) ?? 0);
    if (bytes > PASSWORD_MAX_BYTES) return `must have at most ${PASSWORD_MAX_BYTES} bytes`;
  }
  return characters < PASSWORD_MIN_CHARACTERS ? `must have at least ${PASSWORD_MIN_CHARACTERS} characters` : null;
};

const utf8Bytes = (codePoint: number): number => {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x1_0000 ? 3 : 4;
};

export interface HashCost {
  readonly memoryKib: number;
  readonly passes: number;
  readonly lanes: number;
}

/** A hash that was made with less than what is wanted today. One that was made with more stays. */
export const isHashTooCheap = (made: HashCost, wanted: HashCost): boolean =>
  made.memoryKib < wanted.memoryKib || made.passes < wanted.passes || made.lanes < wanted.lanes;
