// A few names of fields, looked for in a head. Most fields have another length than any of them: their names are not even read.
import type { HeaderField } from '@tunnel/http1';

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
    const given = field.name;
    for (const name of this.#names) if (isSpelling(given, name)) return name;
    return null;
  }

  #mayHave({ nameLength }: HeaderField): boolean {
    return (this.#lengths & (1 << (nameLength & 31))) !== 0;
  }
}

/** `given` in any case and with `-` for `_`, `name` in lower case. Letter by letter: most differ in the first, and no copy is made. */
const isSpelling = (given: string, name: string): boolean => {
  if (given.length !== name.length) return false;
  for (let at = 0; at < name.length; at += 1) {
    const code = given.charCodeAt(at);
    if ((code === UNDERSCORE ? HYPHEN : lowered(code)) !== name.charCodeAt(at)) return false;
  }
  return true;
};

const UNDERSCORE = 0x5f;
const HYPHEN = 0x2d;

/** Names are tokens: there are no other letters than those of ASCII. */
const lowered = (code: number): number => (code >= 0x41 && code <= 0x5a ? code | 0x20 : code);

/** In any case, and compared only where it is as long. */
export const isSameField = (field: HeaderField, name: string): boolean => {
  if (field.nameLength !== name.length) return false;
  const given = field.name;
  for (let at = 0; at < name.length; at += 1) {
    if (lowered(given.charCodeAt(at)) !== lowered(name.charCodeAt(at))) return false;
  }
  return true;
};

/** `name`, or what services that have `_` for `-` take for it. */
export const isTakenFor = (field: HeaderField, name: string): boolean => {
  if (field.nameLength !== name.length) return false;
  const given = field.name;
  for (let at = 0; at < name.length; at += 1) {
    const one = given.charCodeAt(at);
    const wanted = name.charCodeAt(at);
    if (lowered(one) !== lowered(wanted) && !(one === UNDERSCORE && wanted === HYPHEN)) return false;
  }
  return true;
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
