// Rows with their numbers, as a table counts them.

export const numbered = (texts: readonly string[]): ReadonlyMap<number, string> =>
  new Map(texts.map((text, index) => [index + 1, text]));
