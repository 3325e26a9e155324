// Applies a user's changes to a stored request. Decides which changes are allowed, and parses the resulting head as strictly as a
// visitor's head.

import { isFieldValue, isToken, isVisible } from './characters.ts';
import { fieldValueOf } from './fields.ts';
import { HTTP1_LIMITS } from './limits.ts';
import { putBackInUrl, StoredSecrets } from './put-back.ts';
import { isUrlField, REDACTED } from './redact.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';

/** A user's changes to a stored request. Absent parts stay unchanged. */
export interface RequestEdit {
  readonly method?: string | undefined;
  /** New path, including the query. */
  readonly path?: string | undefined;
  /** The complete list of new headers. If Host is not included, the stored Host is kept. */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly body?: string | undefined;
}

export interface EditedBody {
  readonly bytes: number;
  /** True if the body was replaced. A new body is plain text. */
  readonly isNew: boolean;
  /** True if the body contains values that are hidden from users under the stored content type. */
  readonly hasSecrets: boolean;
}

export interface EditProblem {
  readonly kind: 'problem';
  /** Message for the user, starting with the affected part of the request. */
  readonly reason: string;
}

const problem = (reason: string): EditProblem => ({ kind: 'problem', reason });

/** Problem for a mark without a stored secret: the user must enter the value. */
export const markProblem = (part: string): EditProblem =>
  problem(`${part}: ${REDACTED} replaces a value that was not captured; enter the value`);

export const isEdit = ({ method, path, headers, body }: RequestEdit): boolean =>
  method !== undefined || path !== undefined || headers !== undefined || body !== undefined;

/** Headers that belong to the original connection or to the framing of the body. They are recreated whenever the request is sent. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['content-length', 'expect', 'http2-settings'],
]);

/** Methods that normally have a body. Even an empty body gets a Content-Length with these methods. */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

const CHARSET = /;\s*charset=(?:"[^"]*"|[^;\s]*)/i;

/** Creates the head to send: in origin form, with the length of the body and without headers of the original connection. */
export const editedHead = (stored: RequestHead, edit: RequestEdit, body: EditedBody): RequestHead | EditProblem => {
  const method = edit.method ?? stored.method;
  if (!isToken(method)) return problem(`method: '${method}' is not a valid method`);
  const path = pathOf(stored, edit.path);
  if (typeof path !== 'string') return path;
  const fields = edit.headers === undefined ? fieldsOf(stored) : givenFields(stored, edit.headers);
  if (!Array.isArray(fields)) return fields;
  // These headers determine how secrets in the body are found. With different headers, the edited request would reveal values that are
  // hidden in the stored request.
  const telling = body.isNew ? ['Content-Type'] : ['Content-Type', 'Content-Encoding'];
  const other = body.hasSecrets ? telling.find((name) => isOther(name, fields, stored)) : undefined;
  if (other !== undefined) {
    return problem(`headers: another ${other} would reveal ${REDACTED} values in the body; send a new body`);
  }
  const lines = [`${method} ${path} HTTP/${stored.version}`];
  if (stored.authority !== '' && !fields.some(([name]) => name.toLowerCase() === 'host')) {
    lines.push(`Host: ${stored.authority}`);
  }
  for (const [name, value] of fields) {
    const lower = name.toLowerCase();
    if (OWN_FIELDS.has(lower) || stored.connectionNames?.includes(lower) === true) continue;
    if (!body.isNew) lines.push(`${name}: ${value}`);
    // A body written by a user is UTF-8 and not compressed.
    else if (lower === 'content-type') lines.push(`${name}: ${value.replace(CHARSET, '; charset=utf-8')}`);
    else if (lower !== 'content-encoding') lines.push(`${name}: ${value}`);
  }
  if (body.bytes > 0 || WITH_BODY.has(method)) lines.push(`Content-Length: ${body.bytes}`);
  const text = `${lines.join('\r\n')}\r\n\r\n`;
  if (text.length > HTTP1_LIMITS.HTTP_HEAD_MAX_BYTES) {
    return problem(`headers: path and headers together are larger than ${HTTP1_LIMITS.HTTP_HEAD_MAX_BYTES} bytes`);
  }
  const head = parseRequestHead(text);
  return head.kind === 'problem' ? problem(head.reason) : head;
};

const pathOf = (stored: RequestHead, path: string | undefined): string | EditProblem => {
  if (path === undefined) return stored.path;
  const whole = putBackInUrl(path, stored.path);
  if (whole.kind === 'problem') return markProblem('path');
  const isOne = whole.text.startsWith('/') || whole.text === '*';
  return isOne && isVisible(whole.text)
    ? whole.text
    : problem(
        'path: must start with / and contain only visible ASCII characters except #; percent-encode other characters',
      );
};

type Field = readonly [name: string, value: string];

const fieldsOf = ({ headers }: RequestHead): Field[] => headers.map(({ name, value }) => [name, value]);

const isOther = (name: string, fields: readonly Field[], stored: RequestHead): boolean => {
  const lower = name.toLowerCase();
  const given = fields.find(([field]) => field.toLowerCase() === lower)?.[1].trim() ?? null;
  return given !== fieldValueOf(stored.headers, lower);
};

const givenFields = (stored: RequestHead, given: readonly Field[]): Field[] | EditProblem => {
  const secrets = new StoredSecrets();
  for (const { lower, value } of stored.headers) secrets.add(lower, value);
  const fields: Field[] = [];
  for (const [name, value] of given) {
    if (!isToken(name)) return problem(`headers: '${name}' is not a valid header name`);
    if (!isFieldValue(value)) return problem(`headers: the value of ${name} has characters not allowed in a header`);
    const values = storedValues(name.toLowerCase(), value, secrets);
    if (values === null) return markProblem(`headers: ${name}`);
    for (const one of values) fields.push([name, one]);
  }
  return fields;
};

/**
 * Returns the values that a given header value stands for: the value itself, or the stored secrets behind its marks. Repeated headers may
 * have been shown as a single header with several marks. Returns null if a stored secret is missing.
 */
const storedValues = (lower: string, value: string, secrets: StoredSecrets): string[] | null => {
  if (!value.includes(REDACTED)) return [value];
  const marks = value.split(', ');
  if (!marks.every((mark) => mark === REDACTED)) {
    const stored = secrets.take(lower) ?? '';
    if (!isUrlField(lower)) return stored.includes(REDACTED) ? [value] : null;
    const url = putBackInUrl(value, stored);
    return url.kind === 'text' ? [url.text] : null;
  }
  const values = marks.map(() => secrets.take(lower));
  return values.every((one) => one !== undefined) ? values : null;
};
