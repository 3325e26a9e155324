// A stored request with a person's changes: which of them are taken, and the head that comes of it, read as strictly as a visitor's.

import { isFieldValue, isToken, isVisible } from './characters.ts';
import { fieldValueOf } from './fields.ts';
import { HTTP1_LIMITS } from './limits.ts';
import { putBackInUrl, StoredSecrets } from './put-back.ts';
import { isUrlField, REDACTED } from './redact.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';

/** What is left out stays as it was. */
export interface RequestEdit {
  readonly method?: string | undefined;
  /** With its query. */
  readonly path?: string | undefined;
  /** All of them; Host stays when it is not among them. */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly body?: string | undefined;
}

export interface EditedBody {
  readonly bytes: number;
  /** It is another one than was stored, and plain text. */
  readonly isNew: boolean;
  /** It has values that the stored type hides from people. */
  readonly hasSecrets: boolean;
}

export interface EditProblem {
  readonly kind: 'problem';
  /** For people, with the part that it is about. */
  readonly reason: string;
}

const problem = (reason: string): EditProblem => ({ kind: 'problem', reason });

/** What an editor cannot leave as it is: somebody has to say the value. */
export const markProblem = (part: string): EditProblem =>
  problem(`${part}: ${REDACTED} replaces a value that was not captured; enter the value`);

export const isEdit = ({ method, path, headers, body }: RequestEdit): boolean =>
  method !== undefined || path !== undefined || headers !== undefined || body !== undefined;

/** Of the connection that the request came on, or of its body's framing: made anew for each that it is sent on. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['content-length', 'expect', 'http2-settings'],
]);

/** Its requests have a body as a rule: an empty one is told as such. */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

const CHARSET = /;\s*charset=(?:"[^"]*"|[^;\s]*)/i;

/** The head to send: in origin form, with the length of the body and nothing of the first connection. */
export const editedHead = (stored: RequestHead, edit: RequestEdit, body: EditedBody): RequestHead | EditProblem => {
  const method = edit.method ?? stored.method;
  if (!isToken(method)) return problem(`method: '${method}' is not a valid method`);
  const path = pathOf(stored, edit.path);
  if (typeof path !== 'string') return path;
  const fields = edit.headers === undefined ? fieldsOf(stored) : givenFields(stored, edit.headers);
  if (!Array.isArray(fields)) return fields;
  // By these a body is read, and its secrets found: by others the new request would lay open what the stored one hides.
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
    // What a person wrote is UTF-8, and not compressed.
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

/** What one given value means: itself, or what it hides. A repeated field may have been shown as one, with a mark for each. */
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
