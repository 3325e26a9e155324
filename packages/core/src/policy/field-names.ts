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

  has(field: HeaderField): boolean {
    return this.#mayHave(field) && this.#names.includes(field.lower);
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

export const isField = (field: HeaderField, lower: string): boolean =>
  field.nameLength === lower.length && field.lower === lower;
