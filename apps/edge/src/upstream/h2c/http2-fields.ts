// Header fields between HTTP/2, where node gives and takes lists and objects, and our own heads, which are texts.
import type { OutgoingHttpHeaders } from 'node:http2';
import {
  endToEndFields,
  type HeaderField,
  type HeadProblem,
  HTTP1_BOUNDS,
  isFieldValue,
  isToken,
  type OwnResponse,
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
  readTrailers,
  requestHeadFromParts,
} from '@tunnel/core';

/** Names and values in turn, as node gives them; names are in lower case. */
export type RawFields = readonly string[];

export const valueIn = (raw: RawFields, name: string): string | null => {
  for (let at = 0; at < raw.length; at += 2) if (raw[at] === name) return raw[at + 1] ?? '';
  return null;
};

// ---- from a visitor ----

/** Reads what a visitor asks for, by the same rules as HTTP/1.1. */
export const requestHeadOf = (raw: RawFields, hasBody: boolean): RequestHead | HeadProblem => {
  const method = valueIn(raw, ':method') ?? '';
  if (method === 'CONNECT') return problem(501, 'CONNECT is not served here');
  const named = valueIn(raw, ':authority');
  const host = valueIn(raw, 'host');
  if (named !== null && host !== null && named.toLowerCase() !== host.toLowerCase()) {
    return problem(400, 'Host is not the authority');
  }
  const authority = named ?? host ?? '';
  const head = requestHeadFromParts({
    method,
    path: valueIn(raw, ':path') ?? '',
    authority,
    headers: requestFields(raw),
    hasBody,
  });
  const isTooLong = head.kind === 'request' && head.text.length > HTTP1_BOUNDS.headMaxBytes;
  return isTooLong ? problem(431, `the head is over ${HTTP1_BOUNDS.headMaxBytes} bytes`) : head;
};

/** Without pseudo-header fields and Host; the crumbs of a cookie are one field again (RFC 9113, 8.2.3). */
const requestFields = (raw: RawFields): [string, string][] => {
  const fields: [string, string][] = [];
  let cookie: string | null = null;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    const value = raw[at + 1] ?? '';
    if (name.startsWith(':') || name === 'host') continue;
    if (name === 'cookie') cookie = cookie === null ? value : `${cookie}; ${value}`;
    else fields.push([name, value]);
  }
  if (cookie !== null) fields.push(['cookie', cookie]);
  return fields;
};

// ---- to a visitor ----

export const responseFieldsOf = (head: ResponseHead): OutgoingHttpHeaders => {
  const fields = outgoing(endToEndFields(head));
  const hasLength = head.contentLength !== null && head.status >= 200 && !isEmptyStatus(head.status);
  if (hasLength) fields['content-length'] = String(head.contentLength);
  fields[':status'] = head.status;
  return fields;
};

export const ownFieldsOf = ({ status, headers, body }: OwnResponse): OutgoingHttpHeaders => {
  const fields = noFields();
  for (const [name, value] of headers) fields[name] = value;
  fields['content-length'] = String(body.length);
  fields[':status'] = status;
  return fields;
};

/** node ends a response with one of these by itself, and lets no length stand that was meant for a body. */
const isEmptyStatus = (status: number): boolean => status === 204 || status === 205;

// ---- to a local service ----

/** `text` is the head that a service of HTTP/1.1 would get. */
export const serviceFieldsOf = (text: string): OutgoingHttpHeaders => {
  const head = parseRequestHead(text);
  // We wrote it ourselves.
  if (head.kind === 'problem') throw new Error(`a head of our own is malformed: ${head.reason}`);
  const fields = outgoing(head.headers.filter(({ role }) => isForService(role)));
  if (head.framing.kind === 'length') fields['content-length'] = String(head.framing.length);
  if (head.teTrailers) fields['te'] = 'trailers';
  fields[':method'] = head.method;
  fields[':path'] = head.path;
  fields[':scheme'] = 'http';
  fields[':authority'] = head.authority;
  return fields;
};

const isForService = (role: HeaderField['role']): boolean =>
  role === 'ordinary' || role === 'expect' || role === 'forwarded-for' || role === 'forwarded';

// ---- from a local service ----

/**
 * As the head that a service of HTTP/1.1 would have sent. `endsHere`: no body follows, which HTTP/1.1 says by a length of 0.
 */
export const responseHeadOf = (
  raw: RawFields,
  request: Pick<RequestHead, 'method' | 'upgrade'>,
  endsHere: boolean,
): ResponseHead | HeadProblem => {
  const status = valueIn(raw, ':status') ?? '';
  const lines = linesOf(raw);
  if (lines === null) return problem(502, 'a header field with a character that is not allowed');
  return parseResponseHead(`HTTP/1.1 ${status} \r\n${lines}${framingLine(raw, endsHere)}\r\n`, request);
};

const framingLine = (raw: RawFields, endsHere: boolean): string => {
  const status = Number(valueIn(raw, ':status'));
  const isFramed = status < 200 || status === 204 || status === 304 || valueIn(raw, 'content-length') !== null;
  if (isFramed) return '';
  return endsHere ? 'content-length: 0\r\n' : 'transfer-encoding: chunked\r\n';
};

// ---- trailers, either way ----

/** null: they cannot be read. */
export const trailersOf = (raw: RawFields): readonly HeaderField[] | null => {
  const lines = linesOf(raw);
  if (lines === null || lines.length > HTTP1_BOUNDS.trailersMaxBytes) return null;
  const trailers = readTrailers(`${lines}\r\n`, HTTP1_BOUNDS.fieldsMax);
  return trailers.kind === 'problem' ? null : trailers.fields;
};

export const trailerFieldsOf = (trailers: readonly HeaderField[]): OutgoingHttpHeaders => outgoing(trailers);

const linesOf = (raw: RawFields): string | null => {
  let lines = '';
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    const value = raw[at + 1] ?? '';
    if (name.startsWith(':')) continue;
    if (!isToken(name) || !isFieldValue(value)) return null;
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
};

const outgoing = (given: readonly HeaderField[]): OutgoingHttpHeaders => {
  const fields = noFields();
  for (const { lower, value } of given) {
    const before = fields[lower];
    if (before === undefined) fields[lower] = value;
    else if (LISTS_IN_ONE.has(lower)) fields[lower] = `${String(before)}, ${value}`;
    else if (!SINGLE.has(lower)) fields[lower] = Array.isArray(before) ? [...before, value] : [String(before), value];
  }
  return fields;
};

/** Without a prototype: a field may have any name. */
const noFields = (): OutgoingHttpHeaders => Object.create(null) as OutgoingHttpHeaders;

/** Lists that node takes in one field only. */
const LISTS_IN_ONE: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-language',
  'if-match',
  'if-none-match',
]);

/** node refuses a second one of these; the first counts, as in its own HTTP/1.1 parser. */
const SINGLE: ReadonlySet<string> = new Set([
  'access-control-allow-credentials',
  'access-control-max-age',
  'access-control-request-method',
  'age',
  'authorization',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'dnt',
  'etag',
  'expires',
  'from',
  'host',
  'if-modified-since',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'range',
  'referer',
  'retry-after',
  'tk',
  'upgrade-insecure-requests',
  'user-agent',
  'x-content-type-options',
]);

const problem = (status: HeadProblem['status'], reason: string): HeadProblem => ({ kind: 'problem', status, reason });
