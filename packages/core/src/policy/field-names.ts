// A few names of fields, looked for in a head. Most fields have another length than any of them: their names are not even read.
import type { HeaderField } from '../http1/fields.ts';

export class FieldNames {
  readonly #names: readonly string[];
  readonly #lengths: number;

  /** In lower case. */
  constructor(names: readonly string[]) {
    this.#names = names;
    let lengths = 0;
    for (const name of names) lengths |= 1 << (name.length & 31);
    this.#lengths = lengths;
  }

  /** With `-` for `_`: to a CGI, WSGI or PHP service these are one name. null: none of them. */
  spelled(field: HeaderField): string | null {
    if (!this.#mayHave(field)) return null;
    const name = field.lower.replaceAll('_', '-');
    return this.#names.includes(name) ? name : null;
  }

  #mayHave({ nameLength }: HeaderField): boolean {
    return (this.#lengths & (1 << (nameLength & 31))) !== 0;
  }
}

/** `name` in any case, compared only where it is as long. */
export const isSameField = (field: HeaderField, name: string): boolean =>
  field.nameLength === name.length && field.lower === name.toLowerCase();

/** `name`, or what services that have `_` for `-` take for it. */
export const isTakenFor = (field: HeaderField, name: string): boolean => {
  if (field.nameLength !== name.length) return false;
  const given = field.lower;
  const wanted = name.toLowerCase();
  return given === wanted || (given.includes('_') && given.replaceAll('_', '-') === wanted);
};

export const isOneOf = (field: HeaderField, names: readonly string[]): boolean => {
  for (const name of names) if (isSameField(field, name)) return true;
  return false;
};

export const isOneOfPairs = (
  field: HeaderField,
  pairs: readonly (readonly [name: string, value: string])[],
): boolean => {
  for (const [name] of pairs) if (isSameField(field, name)) return true;
  return false;
};
