// One field of a head, whichever way the head came: as lines of a text, or in parts.
import { BLANK, classAt, isFieldValue, isToken } from './char-classes.ts';
import { type FieldRole, roleOf } from './field-role.ts';

export interface HeaderField {
  readonly role: FieldRole;
  readonly nameLength: number;
  readonly name: string;
  readonly lower: string;
  /** Without the blanks around it. */
  readonly value: string;
  /** As it stands in HTTP/1.1, with its CRLF. */
  readonly line: string;
}

/** Offsets in the text it was read from: most fields are passed on and never looked at, so nothing is copied before it is asked for. */
export class LineField implements HeaderField {
  readonly #text: string;
  readonly #colon: number;
  readonly #valueFrom: number;
  readonly #valueTo: number;
  readonly role: FieldRole;
  /** The whole line, with its CRLF: what is passed on is cut out, not built. */
  readonly from: number;
  readonly to: number;

  // biome-ignore format: offsets in their order
  constructor(text: string, from: number, colon: number, valueFrom: number, valueTo: number, to: number, role: FieldRole) {
    this.#text = text;
    this.from = from;
    this.#colon = colon;
    this.#valueFrom = valueFrom;
    this.#valueTo = valueTo;
    this.to = to;
    this.role = role;
  }

  get nameLength(): number {
    return this.#colon - this.from;
  }

  get name(): string {
    return this.#text.slice(this.from, this.#colon);
  }

  get lower(): string {
    return this.name.toLowerCase();
  }

  get value(): string {
    return this.#text.slice(this.#valueFrom, this.#valueTo);
  }

  get line(): string {
    return this.#text.slice(this.from, this.to);
  }
}

/** A name and a value that whoever makes it has checked: neither can break a line. */
export class PartField implements HeaderField {
  readonly role: FieldRole;
  readonly name: string;
  readonly value: string;
  /** With the blanks around it. */
  readonly given: string;

  constructor(name: string, given: string, role: FieldRole) {
    this.name = name;
    this.given = given;
    this.value = withoutBlanks(given);
    this.role = role;
  }

  get nameLength(): number {
    return this.name.length;
  }

  get lower(): string {
    return this.name.toLowerCase();
  }

  get line(): string {
    return `${this.name}: ${this.given}\r\n`;
  }

  get lineLength(): number {
    return this.name.length + this.given.length + 4;
  }
}

const withoutBlanks = (value: string): string => {
  let from = 0;
  let to = value.length;
  while (from < to && (classAt(value, from) & BLANK) !== 0) from += 1;
  while (to > from && (classAt(value, to - 1) & BLANK) !== 0) to -= 1;
  return value.slice(from, to);
};

/** null: one of them could break a line. */
export const partFieldsOf = (parts: Iterable<readonly [name: string, value: string]>): PartField[] | null => {
  const fields: PartField[] = [];
  for (const [name, value] of parts) {
    if (!isToken(name) || !isFieldValue(value)) return null;
    fields.push(new PartField(name, value, roleOf(name)));
  }
  return fields;
};

export const linesOf = (fields: readonly HeaderField[]): string => {
  let lines = '';
  for (const field of fields) lines += field.line;
  return lines;
};

/** The value of the first field of that name, or null. */
export const fieldValueOf = (fields: readonly HeaderField[], lower: string): string | null => {
  for (const field of fields) if (field.nameLength === lower.length && field.lower === lower) return field.value;
  return null;
};
