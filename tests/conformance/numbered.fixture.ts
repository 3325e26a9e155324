// Numbered rows of the specification, and the names of their tests.

/** Numbers the rows of a table or list, starting at `from`. */
export const numbered = (texts: readonly string[], from = 1): ReadonlyMap<number, string> =>
  new Map(texts.map((text, index) => [from + index, text]));

type NameOfRow<Section> = (section: Section, number: number, more?: string) => string;

/**
 * Returns a function that names the test of a row; `more` distinguishes several tests of the same row. `rules` are the sections of
 * numbered sentences; the other sections are tables.
 */
export const namesOfRows =
  <Section extends string>(
    rows: Readonly<Record<Section, ReadonlyMap<number, string>>>,
    rules: ReadonlySet<string> = new Set(),
  ): NameOfRow<Section> =>
  (section, number, more = '') => {
    const text = rows[section].get(number);
    if (text === undefined) throw new Error(`${section} has no row ${number}`);
    const name = `${section}, ${rules.has(section) ? 'rule' : 'row'} ${number}: ${text}`;
    return more === '' ? name : `${name} [${more}]`;
  };
