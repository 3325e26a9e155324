// What was given in a query, as a refusal quotes it: a line, not a page.

const SHOWN_CHARACTERS = 40;

export const shownValue = (given: unknown): string =>
  (Array.isArray(given) ? given.join(', ') : String(given)).slice(0, SHOWN_CHARACTERS);
