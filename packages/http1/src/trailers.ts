// The fields after a chunked body's last chunk: read like a head's, and kept from being taken for one.

import { FieldReader, type HeadProblem, headProblem } from './field-reader.ts';
import { type FieldPairs, type HeaderField, linesOf, partFieldsOf } from './fields.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './limits.ts';

export interface Trailers {
  readonly kind: 'trailers';
  /** Lines to pass on, and the empty line that ends them. */
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

/** Trailers that came in parts (HTTP/2), by the same rules. */
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
 * Fields that decide framing, routing or the connection's end are refused: in a trailer they only serve to deceive a reader
 * that merges it (Node's parser, for one, obeys a `Connection: close` there).
 * Others that a sender must not put there (RFC 9110, 6.5.1) are left out, and the rest, such as grpc-status, passes.
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

/** Request modifiers, authentication, response control and how to read the content: too late after it. */
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
  // Who a visitor is to the rules of a tunnel: only they say so.
  'x-tunnel-auth',
  'x-tunnel-user',
]);
