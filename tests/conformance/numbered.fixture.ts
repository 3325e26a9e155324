// Rows with their numbers, as a table, or a list that begins at `from`, counts them.

export const numbered = (texts: readonly string[], from = 1): ReadonlyMap<number, string> =>
  new Map(texts.map((text, index) => [from + index, text]));
