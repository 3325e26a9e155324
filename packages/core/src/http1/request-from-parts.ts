// A request that came in parts, not as text (HTTP/2), as a head: by the same strict rules, without a text in between.
import { isFieldValue, isToken, isVisible } from './char-classes.ts';
import { FieldReader } from './field-reader.ts';
import { roleOf } from './field-role.ts';
import { type HeadProblem, headProblem } from './head-problem.ts';
import { linesOf, PartField } from './header-field.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './http1-bounds.ts';
import { type RequestHead, requestHeadOf } from './request-head.ts';
import { readTarget } from './request-target.ts';

export interface RequestParts {
  readonly method: string;
  /** `:path` */
  readonly path: string;
  /** `:authority`, or Host. */
  readonly authority: string;
  /** Without pseudo-header fields and without Host. Content-Length is believed, as HTTP/2 has checked it against the data. */
  readonly headers: Iterable<readonly [name: string, value: string]>;
  /** A body follows; when no length is named it is sent in chunks. */
  readonly hasBody: boolean;
}

/**
 * The hazard of a downgrade is a part that becomes more than one line: each is checked before it is taken.
 * Fields of a connection are malformed in HTTP/2 (RFC 9113, 8.2.2): refused, but for `TE: trailers`.
 * The head is as large as its text in HTTP/1.1 would be.
 */
export const requestHeadFromParts = (
  parts: RequestParts,
  bounds: Pick<Http1Bounds, 'fieldsMax' | 'headMaxBytes'> = HTTP1_BOUNDS,
): RequestHead | HeadProblem => {
  const { method, path, authority, hasBody } = parts;
  if (!isToken(method) || !isVisible(path) || !isVisible(authority)) {
    return headProblem(400, 'a pseudo-header field with a character that is not allowed');
  }
  // An absolute form here would overrule the authority that the connection was checked for.
  if (!path.startsWith('/') && path !== '*') return headProblem(400, 'the request target is not a path');
  const given = fieldsOf(parts);
  if (!Array.isArray(given)) return given;
  if (method === 'CONNECT') return headProblem(501, 'CONNECT is not served here');
  const target = readTarget(method, path);
  if (target.kind !== 'target') return headProblem(400, target.reason);
  const fields = new FieldReader();
  const problem = fields.readParts(given, bounds.fieldsMax);
  if (problem !== null) return problem;
  const head = requestHeadOf('', method, path, '1.1', target, fields);
  if (head.kind === 'problem') return head;
  if (!hasBody && head.framing.kind === 'length' && head.framing.length > 0) {
    return headProblem(400, 'a Content-Length without its body');
  }
  const requestLine = `${method} ${path} HTTP/1.1\r\n`;
  let bytes = requestLine.length + 2;
  for (const field of given) bytes += field.lineLength;
  if (bytes > bounds.headMaxBytes) return headProblem(431, `the head is over ${bounds.headMaxBytes} bytes`);
  let text: string | null = null;
  return {
    ...head,
    // Captures want it, and nobody else.
    get text(): string {
      text ??= `${requestLine}${linesOf(given)}\r\n`;
      return text;
    },
  };
};

/** All that HTTP/1.1 would have: Host first, and the coding of a body without a length last. */
const fieldsOf = ({ authority, headers, hasBody }: RequestParts): PartField[] | HeadProblem => {
  const fields = [new PartField('Host', authority, 'host')];
  let hasLength = false;
  for (const [name, value] of headers) {
    if (!isToken(name) || !isFieldValue(value)) {
      return headProblem(400, 'a header field with a character that is not allowed');
    }
    const role = roleOf(name);
    if (CONNECTION_ROLES.has(role)) return headProblem(400, 'a header field that belongs to a connection of HTTP/1.1');
    if (role === 'te') {
      if (value.trim().toLowerCase() !== 'trailers') return headProblem(400, 'TE other than trailers');
    } else if (role === 'length') hasLength = true;
    fields.push(new PartField(name, value, role));
  }
  if (hasBody && !hasLength) fields.push(new PartField('Transfer-Encoding', 'chunked', 'coding'));
  return fields;
};

const CONNECTION_ROLES: ReadonlySet<string> = new Set(['host', 'connection', 'upgrade', 'coding']);
