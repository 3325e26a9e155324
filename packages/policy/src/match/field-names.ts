// A small set of field names to find in a head. Most fields are skipped by length, without reading their names.
import type { HeaderField } from '@tunnel/http1';

export class FieldNames {
  readonly #names: readonly string[];
  readonly #lengths: number;

  /** Creates a set of header field names. `names` are in lower case. */
  constructor(names: readonly string[]) {
    this.#names = names;
    let lengths = 0;
    for (const name of names) lengths |= 1 << (name.length & 31);
    this.#lengths = lengths;
  }

  /** Returns the name that the field spells, with `_` read as `-` as CGI, WSGI and PHP services do. Returns null if no name matches. */
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

/**
 * Compares `given`, in any case and with `_` for `-`, with the lower-case `name`. Character by character: most names differ in the first,
 * and no copy is made.
 */
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

/** Lowers ASCII letters only, because field names contain no other letters. */
const lowered = (code: number): number => (code >= 0x41 && code <= 0x5a ? code | 0x20 : code);

/** Compares header field names without case. Different lengths are rejected first. */
export const isSameField = (field: HeaderField, name: string): boolean => {
  if (field.nameLength !== name.length) return false;
  const given = field.name;
  for (let at = 0; at < name.length; at += 1) {
    if (lowered(given.charCodeAt(at)) !== lowered(name.charCodeAt(at))) return false;
  }
  return true;
};

/** Returns true for `name`, and for spellings that a service with `_` for `-` reads as `name`. */
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
