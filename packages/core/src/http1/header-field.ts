// One field line, as places in the head it was read from: most are passed on and never looked at, so nothing is copied before it is asked for.
import type { FieldRole } from './field-role.ts';

export class HeaderField {
  readonly #text: string;
  readonly #colon: number;
  readonly #valueFrom: number;
  readonly #valueTo: number;
  readonly role: FieldRole;
  /** The whole line, with its CRLF: what is passed on is cut out, not built. */
  readonly from: number;
  readonly to: number;

  // biome-ignore format: places in their order
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
}

/** The value of the first field of that name, or null. */
export const fieldValueOf = (fields: readonly HeaderField[], lower: string): string | null => {
  for (const field of fields) if (field.nameLength === lower.length && field.lower === lower) return field.value;
  return null;
};
