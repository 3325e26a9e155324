// Rows of the specification with their numbers, and the names of their tests.

/** A table or a list counts its rows; some lists begin at `from`. */
export const numbered = (texts: readonly string[], from = 1): ReadonlyMap<number, string> =>
  new Map(texts.map((text, index) => [from + index, text]));

type NameOfRow<Section> = (section: Section, number: number, more?: string) => string;

/** The name of a row's test; `more` tells several tests of one row apart. `rules`: the sections of numbered sentences; the others are tables. */
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
