// Converts header fields between Node's HTTP/2 lists and objects and the edge's head types.
import type { OutgoingHttpHeaders } from 'node:http2';
import {
  type EdgeResponse,
  endToEndFields,
  type HeaderField,
  type HeadProblem,
  hasNoBody,
  type RequestHead,
  type ResponseHead,
  requestFieldsFor,
  requestHeadFromParts,
  responseHeadFromParts,
  type ServiceRequestOptions,
  trailersFromParts,
} from '@tunnel/http1';

/** Alternating names and values, as provided by Node. Names are in lower case. */
export type RawFields = readonly string[];

export const valueIn = (raw: RawFields, name: string): string | null => {
  for (let at = 0; at < raw.length; at += 2) if (raw[at] === name) return raw[at + 1] ?? '';
  return null;
};

// ---- from a visitor ----

/** Parses the head of a visitor's HTTP/2 request, by the same rules as HTTP/1.1. */
export const requestHeadOf = (raw: RawFields, hasBody: boolean): RequestHead | HeadProblem => {
  const method = valueIn(raw, ':method') ?? '';
  if (method === 'CONNECT') return problem(501, 'CONNECT is not supported');
  const named = valueIn(raw, ':authority');
  const host = valueIn(raw, 'host');
  if (named !== null && host !== null && named.toLowerCase() !== host.toLowerCase()) {
    return problem(400, 'Host does not match the authority');
  }
  const authority = named ?? host ?? '';
  return requestHeadFromParts({
    method,
    path: valueIn(raw, ':path') ?? '',
    authority,
    headers: requestFields(raw),
    hasBody,
  });
};

/** Removes Host and joins the parts of a split Cookie header (RFC 9113, 8.2.3). */
const requestFields = (raw: RawFields): [string, string][] => {
  const fields: [string, string][] = [];
  let cookie: string | null = null;
  for (const field of fieldsIn(raw)) {
    const [name, value] = field;
    if (name === 'host') continue;
    if (name === 'cookie') cookie = cookie === null ? value : `${cookie}; ${value}`;
    else fields.push(field);
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

export const ownFieldsOf = ({ status, headers, body }: EdgeResponse): OutgoingHttpHeaders => {
  const fields = noFields();
  for (const [name, value] of headers) addField(fields, name.toLowerCase(), value);
  if (!hasNoBody(status)) fields['content-length'] = String(body.length);
  fields[':status'] = status;
  return fields;
};

/** Response statuses with which Node.js ends an HTTP/2 response automatically and accepts no Content-Length. */
const isEmptyStatus = (status: number): boolean => status === 204 || status === 205;

// ---- to a local service ----

/** Returns the head for an HTTP/2 service, equivalent to the head for an HTTP/1.1 service. */
export const serviceFieldsOf = (head: RequestHead, options: ServiceRequestOptions): OutgoingHttpHeaders => {
  const { method, path, authority, fields: given } = requestFieldsFor(head, options);
  const fields = outgoing(given);
  fields[':method'] = method;
  fields[':path'] = path;
  fields[':scheme'] = 'http';
  fields[':authority'] = authority;
  return fields;
};

// ---- from a local service ----

/** Returns the head that an equivalent HTTP/1.1 service would have sent. `endsHere`: no body follows. */
export const responseHeadOf = (
  raw: RawFields,
  request: Pick<RequestHead, 'method' | 'upgrade'>,
  endsHere: boolean,
): ResponseHead | HeadProblem =>
  responseHeadFromParts({ status: valueIn(raw, ':status') ?? '', fields: fieldsIn(raw), endsHere }, request);

// ---- trailers, either way ----

/** Parses HTTP/2 trailers. Returns null if they are malformed. */
export const trailersOf = (raw: RawFields): readonly HeaderField[] | null => {
  const trailers = trailersFromParts(fieldsIn(raw));
  return 'kind' in trailers ? null : trailers;
};

export const trailerFieldsOf = (trailers: readonly HeaderField[]): OutgoingHttpHeaders => outgoing(trailers);

/** Returns the HTTP/2 header fields without pseudo-header fields. */
const fieldsIn = (raw: RawFields): [name: string, value: string][] => {
  const fields: [string, string][] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    if (!name.startsWith(':')) fields.push([name, raw[at + 1] ?? '']);
  }
  return fields;
};

const outgoing = (given: readonly HeaderField[]): OutgoingHttpHeaders => {
  const fields = noFields();
  for (const { lower, value } of given) addField(fields, lower, value);
  return fields;
};

/** Adds a header field that may be repeated, such as Set-Cookie. */
const addField = (fields: OutgoingHttpHeaders, lower: string, value: string): void => {
  const before = fields[lower];
  if (before === undefined) fields[lower] = value;
  else if (LISTS_IN_ONE.has(lower)) fields[lower] = `${String(before)}, ${value}`;
  else if (!SINGLE.has(lower)) fields[lower] = Array.isArray(before) ? [...before, value] : [String(before), value];
};

/** Returns an object without a prototype, because a field can have any name. */
const noFields = (): OutgoingHttpHeaders => Object.create(null) as OutgoingHttpHeaders;

/** Header fields with a list as value that Node.js accepts only as a single field. */
const LISTS_IN_ONE: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-language',
  'if-match',
  'if-none-match',
]);

/** Fields of which Node rejects a second value. The first value is used, as in Node's HTTP/1.1 parser. */
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
