// The fields after a chunked body's last chunk: read like a head's, and kept from being taken for one.
import { FieldReader } from './field-reader.ts';
import { type HeadProblem, headProblem } from './head-problem.ts';
import type { HeaderField } from './header-field.ts';

export interface Trailers {
  readonly kind: 'trailers';
  /** Lines to pass on, and the empty line that ends them. */
  readonly text: string;
  readonly fields: readonly HeaderField[];
}

export const NO_TRAILERS: readonly HeaderField[] = [];

/**
 * Fields that decide framing, routing or the connection's end are refused: in a trailer they only serve to deceive a reader
 * that merges it (Node's parser, for one, obeys a `Connection: close` there).
 * Others that a sender must not put there (RFC 9110, 6.5.1) are left out, and the rest, such as grpc-status, passes.
 */
export const readTrailers = (text: string, fieldsMax: number): Trailers | HeadProblem => {
  const reader = new FieldReader();
  const problem = reader.read(text, 0, fieldsMax);
  if (problem !== null) return problem;
  const fields: HeaderField[] = [];
  let kept = '';
  for (const field of reader.fields) {
    const { role } = field;
    if (role === 'length' || role === 'coding' || role === 'host' || role === 'connection') {
      return headProblem(400, 'a trailer that belongs into the head');
    }
    if (role !== 'ordinary' || NOT_IN_TRAILERS.has(field.lower)) continue;
    fields.push(field);
    kept += text.slice(field.from, field.to);
  }
  return { kind: 'trailers', text: `${kept}\r\n`, fields };
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
]);
