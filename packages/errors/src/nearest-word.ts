// Suggestions for misspelled words ("Did you mean …"): finds the nearest known word by edit distance, if the distance is small enough.

/** Counts the edits between two words: replaced, added and missing letters, and swapped neighbors. */
const editDistance = (a: string, b: string): number => {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + change);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforePrevious[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    beforePrevious = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
};

/**
 * Maximum length of a word to suggest a correction for. Longer words are not typing errors, and the time for a comparison grows with the
 * product of the lengths.
 */
const MOST_CHARACTERS = 60;

/** Normalizes a word for comparison: config keys have underscores, flags have hyphens, and users mix them up. */
const plain = (word: string): string => word.toLowerCase().replaceAll('-', '_');

/** Returns the known word that the user probably meant, or undefined if no known word is similar. */
export const nearestWord = (word: string, known: readonly string[]): string | undefined => {
  if (word.length > MOST_CHARACTERS) return undefined;
  const asWritten = plain(word);
  const most = Math.max(1, Math.floor(word.length / 3));
  return known
    .map((candidate) => ({ candidate, distance: editDistance(asWritten, plain(candidate)) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance)[0]?.candidate;
};
