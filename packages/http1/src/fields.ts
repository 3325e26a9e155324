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

  /** What `from` and `to` are offsets in. */
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

/** A field of a checked name and a checked value: neither can break a line. */
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

/** Fields of names and values; null if a name or a value could break a line. */
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
 * Of the name `text[from, to)`, a token: by length and first letter, and what nearly every head has by its letters, so that no copy of a name is made.
 * A map would want one, and newer engines put each text that a map is asked for into a table of theirs first.
 * `http2-settings` belongs to an h2c upgrade, which is never passed on.
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

/** In any case. No other character of a token becomes a letter or a hyphen by that bit. */
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

/** Fields by which a proxy says who asks, and how. Ours are written anew; what else there is, any visitor could make up. */
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

/** `X_Forwarded_For` is the same variable as ours to a CGI, WSGI or PHP service: a claim that must not stand beside it. */
const roleOfLookalike = (lower: string): FieldRole => {
  const role = ROLE_OF_CLAIM.get(lower.replaceAll('_', '-')) ?? 'ordinary';
  return role === 'forwarded-for' ? 'forwarded' : role;
};
