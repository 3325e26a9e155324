// One field of a head, whichever way the head came, and what its name means to a proxy.
import { BLANK, classAt, isFieldValue, isToken } from './characters.ts';

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

export type FieldPairs = Iterable<readonly [name: string, value: string]>;

/** null: one of them could break a line. */
export const partFieldsOf = (parts: FieldPairs): PartField[] | null => {
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

/** What a field's name is to a proxy. The one list: parser, rewriting and trailers read it. */
export type FieldRole =
  /** Passed on as it is. */
  | 'ordinary'
  | 'host'
  | 'length'
  | 'coding'
  | 'connection'
  | 'upgrade'
  | 'expect'
  | 'te'
  | 'forwarded-for'
  /** Written anew by us, whatever the visitor claims. */
  | 'forwarded'
  /** Says who asks, and we do not write it: only a trusted proxy's passes. */
  | 'claim'
  /** About one connection only (RFC 9110, 7.6.1; the Proxy- fields speak to the proxy in between, and that is not the service). */
  | 'hop';

/**
 * Of the name `text[from, to)`: by length and first letter, so that most names are settled without a copy of them.
 * `http2-settings` belongs to an h2c upgrade, which is never passed on.
 */
export const roleAt = (text: string, from: number, to: number): FieldRole => {
  const first = text.charCodeAt(from) | 0x20;
  switch (to - from) {
    case 2:
    case 16:
    case 17:
      if (first !== LETTER_T && first !== LETTER_X && first !== LETTER_P) return 'ordinary';
      break;
    case 4:
      if (first !== LETTER_H) return 'ordinary';
      break;
    case 9:
      if (first !== LETTER_X && first !== LETTER_F) return 'ordinary';
      break;
    case 11:
      if (first !== LETTER_X) return 'ordinary';
      break;
    case 6:
      if (first !== LETTER_E) return 'ordinary';
      break;
    case 7:
      if (first !== LETTER_U) return 'ordinary';
      break;
    case 10:
      if (first !== LETTER_C && first !== LETTER_K) return 'ordinary';
      break;
    case 14:
      if (first !== LETTER_C && first !== LETTER_H && first !== LETTER_T) return 'ordinary';
      break;
    case 15:
      if (first !== LETTER_X) return 'ordinary';
      break;
    case 18:
    case 19:
      if (first !== LETTER_P) return 'ordinary';
      break;
    default:
      return 'ordinary';
  }
  const lower = text.slice(from, to).toLowerCase();
  const role = ROLE_OF_CLAIM.get(lower);
  if (role !== undefined) return role;
  return lower.includes('_') ? roleOfLookalike(lower) : roleOfLower(lower);
};

export const roleOf = (name: string): FieldRole => roleAt(name, 0, name.length);

const LETTER_C = 0x63;
const LETTER_E = 0x65;
const LETTER_F = 0x66;
const LETTER_H = 0x68;
const LETTER_K = 0x6b;
const LETTER_P = 0x70;
const LETTER_T = 0x74;
const LETTER_U = 0x75;
const LETTER_X = 0x78;

const roleOfLower = (lower: string): FieldRole => {
  switch (lower) {
    case 'host':
    case 'te':
    case 'expect':
    case 'upgrade':
    case 'connection':
      return lower;
    case 'content-length':
      return 'length';
    case 'transfer-encoding':
      return 'coding';
    case 'keep-alive':
    case 'http2-settings':
    case 'proxy-connection':
    case 'proxy-authenticate':
    case 'proxy-authorization':
      return 'hop';
    default:
      return 'ordinary';
  }
};

/** Fields by which a proxy says who asks, and how. Ours are written anew; what else there is, any visitor could make up. */
const ROLE_OF_CLAIM: ReadonlyMap<string, FieldRole> = new Map<string, FieldRole>([
  ['x-forwarded-for', 'forwarded-for'],
  ['x-forwarded-proto', 'forwarded'],
  ['x-forwarded-host', 'forwarded'],
  ['x-forwarded-port', 'forwarded'],
  ['x-real-ip', 'forwarded'],
  ['forwarded', 'claim'],
  ['true-client-ip', 'claim'],
  ['x-client-ip', 'claim'],
]);

/** `X_Forwarded_For` is the same variable as ours to a CGI, WSGI or PHP service: a claim that must not stand beside it. */
const roleOfLookalike = (lower: string): FieldRole => {
  const role = ROLE_OF_CLAIM.get(lower.replaceAll('_', '-')) ?? 'ordinary';
  return role === 'forwarded-for' ? 'forwarded' : role;
};
