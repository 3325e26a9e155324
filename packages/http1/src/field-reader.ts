// Parses the fields of a head in one pass, and collects the values that determine framing and connection. Errors are returned as values.

import { BLANK, CR, classAt, eachListItem, HTAB, LF, SP, TOKEN, VALUE } from './characters.ts';
import { type FieldRole, type HeaderField, LineField, type PartField, roleAt } from './fields.ts';

/** Maximum digits of a Content-Length: enough for every safe integer, and for some padding with zeros. */
const HTTP_LENGTH_MAX_DIGITS = 16;
/** Maximum number of names in `Connection`. Every name is compared with every field, so a long list would waste time. */
const HTTP_CONNECTION_OPTIONS_MAX = 32;

/** Error in a head, as a value, so that the caller can respond, close the connection and count the error. */
export interface HeadProblem {
  readonly kind: 'problem';
  /** Status code of the response. 502 is used for heads from the local service. */
  readonly status: 400 | 431 | 501 | 502 | 505;
  /** Reason for the error page and the log. Contains no part of the message. */
  readonly reason: string;
}

export const headProblem = (status: HeadProblem['status'], reason: string): HeadProblem => ({
  kind: 'problem',
  status,
  reason,
});

const COLON = 0x3a;

export class FieldReader {
  readonly fields: HeaderField[] = [];
  hostCount = 0;
  host = '';
  /** Value of Content-Length, or null if the field is absent. */
  contentLength: number | null = null;
  codingCount = 0;
  coding = '';
  close = false;
  keepAlive = false;
  /** True if `Connection: upgrade` was sent. Otherwise `Upgrade` has no effect. */
  upgradeOption = false;
  /** Further names in `Connection`, in lower case. Fields with these names are not passed on. */
  named: string[] | null = null;
  upgrade: string | null = null;
  expectContinue = false;
  teTrailers = false;

  /** Parses the fields from `start` to the empty line at the end of the text. Returns null on success. */
  read(text: string, start: number, fieldsMax: number): HeadProblem | null {
    const end = text.length - 2;
    let at = start;
    while (at < end) {
      if (this.fields.length === fieldsMax) return headProblem(431, 'too many header fields');
      const from = at;
      while ((classAt(text, at) & TOKEN) !== 0) at += 1;
      if (at === from || text.charCodeAt(at) !== COLON) return problemOfName(text, from, at);
      const colon = at;
      at += 1;
      while ((classAt(text, at) & BLANK) !== 0) at += 1;
      const valueFrom = at;
      at = valueEnd(text, at);
      if (text.charCodeAt(at) !== CR || text.charCodeAt(at + 1) !== LF) return problemOfValue(text, at);
      let valueTo = at;
      while (valueTo > valueFrom && (classAt(text, valueTo - 1) & BLANK) !== 0) valueTo -= 1;
      at += 2;
      const role = roleAt(text, from, colon);
      const field = new LineField(text, from, colon, valueFrom, valueTo, at, role);
      this.fields.push(field);
      if (role === 'ordinary') continue;
      const problem = this.#note(role, field.value) ?? problemOfBlanks(field);
      if (problem !== null) return problem;
    }
    return at === end ? null : headProblem(400, 'the headers do not end with an empty line');
  }

  /** Reads fields that are given one by one, with their characters already checked. Returns null on success. */
  readParts(parts: readonly PartField[], fieldsMax: number): HeadProblem | null {
    for (const field of parts) {
      if (this.fields.length === fieldsMax) return headProblem(431, 'too many header fields');
      this.fields.push(field);
      if (field.role === 'ordinary') continue;
      const problem = this.#note(field.role, field.value) ?? problemOfBlanks(field);
      if (problem !== null) return problem;
    }
    return null;
  }

  #note(role: FieldRole, value: string): HeadProblem | null {
    switch (role) {
      case 'host':
        this.hostCount += 1;
        this.host = value;
        return null;
      case 'length':
        return this.#noteLength(value);
      case 'coding':
        this.codingCount += 1;
        this.coding = value;
        return null;
      case 'connection':
        return this.#noteConnection(value);
      case 'upgrade':
        this.upgrade = this.upgrade === null ? value : `${this.upgrade}, ${value}`;
        return null;
      case 'expect':
        if (value.toLowerCase() === '100-continue') this.expectContinue = true;
        return null;
      case 'te':
        eachListItem(value.toLowerCase(), (item) => {
          if (item === 'trailers') this.teTrailers = true;
        });
        return null;
      default:
        return null;
    }
  }

  /**
   * Notes the Content-Length. Rejects a repeated field even if the values are equal, because only incorrectly assembled messages have it.
   */
  #noteLength(value: string): HeadProblem | null {
    if (this.contentLength !== null) return headProblem(400, 'Content-Length is repeated');
    const length = readLength(value);
    if (length < 0) return headProblem(400, 'Content-Length is not a plain decimal number');
    this.contentLength = length;
    return null;
  }

  #noteConnection(value: string): HeadProblem | null {
    if (value === 'keep-alive') this.keepAlive = true;
    else if (value === 'close') this.close = true;
    else eachListItem(value.toLowerCase(), (option) => this.#noteOption(option));
    const isTooLong = this.named !== null && this.named.length > HTTP_CONNECTION_OPTIONS_MAX;
    return isTooLong ? headProblem(400, 'too many options in Connection') : null;
  }

  #noteOption(option: string): void {
    if (option === 'close') this.close = true;
    else if (option === 'keep-alive') this.keepAlive = true;
    else if (option === 'upgrade') this.upgradeOption = true;
    else if (this.named === null) this.named = [option];
    else if (this.named.length <= HTTP_CONNECTION_OPTIONS_MAX) this.named.push(option);
  }
}

/**
 * Number of characters of a field value that are checked one by one. Most values are shorter, where a loop is faster than a regular
 * expression; for longer values, such as cookies or tokens, a regular expression is faster.
 */
const NEAR_CHARS = 64;
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/g;

/** Returns the position of the first character that is not allowed in a value. In a complete line, the position of its CR. */
const valueEnd = (text: string, from: number): number => {
  const near = from + NEAR_CHARS;
  let at = from;
  while ((classAt(text, at) & VALUE) !== 0) {
    at += 1;
    if (at < near) continue;
    NO_VALUE.lastIndex = at;
    return NO_VALUE.test(text) ? NO_VALUE.lastIndex - 1 : text.length;
  }
  return at;
};

/** Parses a Content-Length. Returns -1 for texts such as `+5`, `0x5`, `5, 5`, ` 5 5` and '', and for lengths beyond the safe integers. */
const readLength = (value: string): number => {
  if (value.length === 0 || value.length > HTTP_LENGTH_MAX_DIGITS) return -1;
  let length = 0;
  for (let at = 0; at < value.length; at += 1) {
    const digit = value.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return -1;
    length = length * 10 + digit;
  }
  return Number.isSafeInteger(length) ? length : -1;
};

/**
 * Rejects a tab next to a length or a coding. The tab is legal, but not every parser removes it, and the end of a body must be
 * unambiguous.
 */
const problemOfBlanks = (field: HeaderField): HeadProblem | null => {
  if (field.role !== 'length' && field.role !== 'coding') return null;
  return field.line.includes('\t') ? headProblem(400, 'tab next to a length or a coding') : null;
};

const problemOfName = (text: string, nameStart: number, at: number): HeadProblem => {
  const first = text.charCodeAt(nameStart);
  const stop = text.charCodeAt(at);
  if (first === SP || first === HTAB) return headProblem(400, 'header line starts with a space');
  if (at === nameStart && stop === COLON) return headProblem(400, 'header field without a name');
  if (stop === SP || stop === HTAB) return headProblem(400, 'space before the colon of a header field');
  if (stop === CR || stop === LF) return headProblem(400, 'header line without a colon');
  return headProblem(400, 'invalid character in a header name');
};

const problemOfValue = (text: string, at: number): HeadProblem => {
  const stop = text.charCodeAt(at);
  if (stop === LF) return headProblem(400, 'line ends with LF instead of CRLF');
  if (stop === CR) return headProblem(400, 'CR without LF');
  return headProblem(400, 'control character in a header value');
};
