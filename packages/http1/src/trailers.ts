// Trailers: the fields after the last chunk of a chunked body. Parsed like the fields of a head, and filtered so that no recipient
// mistakes them for header fields.

import { FieldReader, type HeadProblem, headProblem } from './field-reader.ts';
import { type FieldPairs, type HeaderField, linesOf, partFieldsOf } from './fields.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './limits.ts';

export interface Trailers {
  readonly kind: 'trailers';
  /** The trailer lines to pass on, including the final empty line. */
  readonly text: string;
  readonly fields: readonly HeaderField[];
}

export const NO_TRAILERS: readonly HeaderField[] = [];

export const readTrailers = (text: string, fieldsMax: number): Trailers | HeadProblem => {
  const reader = new FieldReader();
  const problem = reader.read(text, 0, fieldsMax);
  if (problem !== null) return problem;
  const fields = allowedOf(reader.fields);
  return Array.isArray(fields) ? { kind: 'trailers', text: `${linesOf(fields)}\r\n`, fields } : fields;
};

/** Reads trailers given as names and values (HTTP/2), by the same rules as trailers given as text. */
export const trailersFromParts = (
  parts: FieldPairs,
  bounds: Pick<Http1Bounds, 'fieldsMax' | 'trailersMaxBytes'> = HTTP1_BOUNDS,
): readonly HeaderField[] | HeadProblem => {
  const given = partFieldsOf(parts);
  if (given === null) return headProblem(400, 'invalid character in a trailer field');
  let bytes = 0;
  for (const field of given) bytes += field.lineLength;
  if (bytes > bounds.trailersMaxBytes) return headProblem(400, 'trailers too long');
  const reader = new FieldReader();
  return reader.readParts(given, bounds.fieldsMax) ?? allowedOf(reader.fields);
};

/**
 * Filters trailers. Fields that determine framing, routing or the end of the connection are rejected: in a trailer, their only use is to
 * deceive a recipient that merges trailers into the head. Node.js, for example, obeys a `Connection: close` in a trailer. Other fields
 * that are not allowed in trailers (RFC 9110, 6.5.1) are removed. The rest, such as grpc-status, passes.
 */
const allowedOf = (given: readonly HeaderField[]): HeaderField[] | HeadProblem => {
  const fields: HeaderField[] = [];
  for (const field of given) {
    const { role } = field;
    if (role === 'length' || role === 'coding' || role === 'host' || role === 'connection') {
      return headProblem(400, 'field not allowed in trailers');
    }
    if (role === 'ordinary' && !NOT_IN_TRAILERS.has(field.lower.replaceAll('_', '-'))) fields.push(field);
  }
  return fields;
};

/**
 * Fields removed from trailers: request modifiers, authentication, response control, and the description of the content. After the
 * content, these fields come too late.
 */
const NOT_IN_TRAILERS: ReadonlySet<string> = new Set([
  'accept-ranges',
  'age',
  'authentication-info',
  'authorization',
  'cache-control',
  'content-encoding',
  'content-location',
  'content-range',
  'content-type',
  'cookie',
  'date',
  'expires',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'location',
  'max-forwards',
  'pragma',
  'range',
  'retry-after',
  'set-cookie',
  'trailer',
  'vary',
  'warning',
  'www-authenticate',
  // These fields report the visitor's identity. Only the rules of a tunnel may set them.
  'x-tunnel-auth',
  'x-tunnel-user',
]);
