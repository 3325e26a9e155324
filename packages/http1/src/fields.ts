// A header field, either parsed from text or given as name and value, and the role of its name for a proxy.
import { BLANK, classAt, isFieldValue, isToken } from './characters.ts';

export interface HeaderField {
  readonly role: FieldRole;
  readonly nameLength: number;
  readonly name: string;
  readonly lower: string;
  /** Field value without surrounding blanks. */
  readonly value: string;
  /** The field line as written in HTTP/1.1, including CRLF. */
  readonly line: string;
}

/**
 * A header field given by offsets in the text of its head. Most fields are passed on without being read, so a substring is created only
 * when requested.
 */
export class LineField implements HeaderField {
  readonly #text: string;
  readonly #colon: number;
  readonly #valueFrom: number;
  readonly #valueTo: number;
  readonly role: FieldRole;
  /** Offsets of the whole line including CRLF, so that a field can be passed on as a slice of the text. */
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

  /** The text that contains the field; `from` and `to` are offsets in this text. */
  get source(): string {
    return this.#text;
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

/** A header field given by name and value. The caller has checked that neither contains characters that would end the line. */
export class PartField implements HeaderField {
  readonly role: FieldRole;
  readonly name: string;
  readonly value: string;
  /** Field value as given, with surrounding blanks. */
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

/** Creates header fields from names and values. Returns null if a name or value contains a character that would end its line. */
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

/** Returns the value of the first field with the given lower-case name, or null. */
export const fieldValueOf = (fields: readonly HeaderField[], lower: string): string | null => {
  for (const field of fields) if (field.nameLength === lower.length && field.lower === lower) return field.value;
  return null;
};

/** Value of a field that is allowed once; null if the field is absent or repeated, because services differ in the value they take. */
export const onlyValueOf = (fields: readonly HeaderField[], lower: string): string | null => {
  let value: string | null = null;
  for (const field of fields) {
    if (field.nameLength !== lower.length || field.lower !== lower) continue;
    if (value !== null) return null;
    value = field.value;
  }
  return value;
};

/** Role of a field name for a proxy. This is the only list of roles; the parser, the rewriting of heads and the trailers use it. */
export type FieldRole =
  /** A field that a proxy passes on unchanged. */
  | 'ordinary'
  | 'host'
  | 'length'
  | 'coding'
  | 'connection'
  | 'upgrade'
  | 'expect'
  | 'te'
  | 'forwarded-for'
  /** A forwarded field that the edge always writes itself. The visitor's value is dropped. */
  | 'forwarded'
  /** Describes the visitor, but is never written by the edge. Passed on only if a trusted proxy sent the request. */
  | 'claim'
  /**
   * Meant for a single connection (RFC 9110, 7.6.1), and therefore not passed on. The Proxy- fields are meant for the next proxy, and the
   * service is not a proxy.
   */
  | 'hop';

/**
 * Returns the role of the name `text[from, to)`, which is a token. Distinguishes names by length and first letter, and compares frequent
 * names in place, so that no substring is created. A lookup in a map would need a substring, and newer engines also intern every string
 * used for a lookup. `http2-settings` belongs to an h2c upgrade, which is never passed on.
 */
export const roleAt = (text: string, from: number, to: number): FieldRole => {
  const first = text.charCodeAt(from) | 0x20;
  switch (to - from) {
    case 2:
      return isName(text, from, 'te') ? 'te' : 'ordinary';
    case 4:
      return isName(text, from, 'host') ? 'host' : 'ordinary';
    case 6:
      return isName(text, from, 'expect') ? 'expect' : 'ordinary';
    case 7:
      return isName(text, from, 'upgrade') ? 'upgrade' : 'ordinary';
    case 10:
      if (isName(text, from, 'connection')) return 'connection';
      return isName(text, from, 'keep-alive') ? 'hop' : 'ordinary';
    case 14:
      if (isName(text, from, 'content-length')) return 'length';
      return first === LETTER_H || first === LETTER_T ? rareRole(text.slice(from, to).toLowerCase()) : 'ordinary';
    case 17:
      if (isName(text, from, 'transfer-encoding')) return 'coding';
      return first === LETTER_X ? rareRole(text.slice(from, to).toLowerCase()) : 'ordinary';
    case 9:
    case 11:
    case 15:
    case 16:
    case 18:
    case 19:
      if (first !== LETTER_X && first !== LETTER_P && first !== LETTER_F) return 'ordinary';
      return rareRole(text.slice(from, to).toLowerCase());
    default:
      return 'ordinary';
  }
};

/** Compares a name with a lower-case word, ignoring case. Setting bit 0x20 turns no other token character into a letter or hyphen. */
const isName = (text: string, from: number, lower: string): boolean => {
  for (let at = 0; at < lower.length; at += 1) {
    if ((text.charCodeAt(from + at) | 0x20) !== lower.charCodeAt(at)) return false;
  }
  return true;
};

export const roleOf = (name: string): FieldRole => roleAt(name, 0, name.length);

const LETTER_F = 0x66;
const LETTER_H = 0x68;
const LETTER_P = 0x70;
const LETTER_T = 0x74;
const LETTER_X = 0x78;

const rareRole = (lower: string): FieldRole => {
  switch (lower) {
    case 'http2-settings':
    case 'proxy-connection':
    case 'proxy-authenticate':
    case 'proxy-authorization':
      return 'hop';
    default:
      return ROLE_OF_CLAIM.get(lower) ?? (lower.includes('_') ? roleOfLookalike(lower) : 'ordinary');
  }
};

/**
 * Roles of the fields by which a proxy describes the visitor. The edge rewrites some of them; the rest cannot be trusted, because any
 * visitor can send them.
 */
const ROLE_OF_CLAIM: ReadonlyMap<string, FieldRole> = new Map<string, FieldRole>([
  ['x-forwarded-for', 'forwarded-for'],
  ['x-forwarded-proto', 'forwarded'],
  ['x-forwarded-host', 'forwarded'],
  ['x-forwarded-port', 'forwarded'],
  ['x-real-ip', 'forwarded'],
  ['x-tunnel-secret', 'forwarded'],
  ['x-tunnel-replay', 'forwarded'],
  ['forwarded', 'claim'],
  ['true-client-ip', 'claim'],
  ['x-client-ip', 'claim'],
]);

/**
 * Returns the role of a name with underscores. CGI, WSGI and PHP services read `X_Forwarded_For` as the same variable as
 * `X-Forwarded-For`, so a visitor's value must not be passed on next to the edge's.
 */
const roleOfLookalike = (lower: string): FieldRole => {
  const role = ROLE_OF_CLAIM.get(lower.replaceAll('_', '-')) ?? 'ordinary';
  return role === 'forwarded-for' ? 'forwarded' : role;
};
