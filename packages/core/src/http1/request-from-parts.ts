// A request that came in parts, not as text (HTTP/2, a replay), as a head: written once, then read by the same strict parser.
import { isFieldValue, isToken, isVisible } from './char-classes.ts';
import { roleOf } from './field-role.ts';
import { type HeadProblem, headProblem } from './head-problem.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './http1-bounds.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';

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
 * The hazard of a downgrade is a part that becomes more than one line: each is checked before it is written.
 * Fields of a connection are malformed in HTTP/2 (RFC 9113, 8.2.2): refused, but for `TE: trailers`.
 */
export const requestHeadFromParts = (
  parts: RequestParts,
  bounds: Pick<Http1Bounds, 'fieldsMax'> = HTTP1_BOUNDS,
): RequestHead | HeadProblem => {
  const { method, path, authority } = parts;
  if (!isToken(method) || !isVisible(path) || !isVisible(authority)) {
    return headProblem(400, 'a pseudo-header field with a character that is not allowed');
  }
  // An absolute form here would overrule the authority that the connection was checked for.
  if (!path.startsWith('/') && path !== '*') return headProblem(400, 'the request target is not a path');
  let text = `${method} ${path} HTTP/1.1\r\nHost: ${authority}\r\n`;
  let hasLength = false;
  for (const [name, value] of parts.headers) {
    if (!isToken(name) || !isFieldValue(value)) {
      return headProblem(400, 'a header field with a character that is not allowed');
    }
    const role = roleOf(name);
    if (CONNECTION_ROLES.has(role)) return headProblem(400, 'a header field that belongs to a connection of HTTP/1.1');
    if (role === 'te') {
      if (value.trim().toLowerCase() !== 'trailers') return headProblem(400, 'TE other than trailers');
    } else if (role === 'length') hasLength = true;
    text += `${name}: ${value}\r\n`;
  }
  if (parts.hasBody && !hasLength) text += 'Transfer-Encoding: chunked\r\n';
  const head = parseRequestHead(`${text}\r\n`, bounds);
  const isShort =
    head.kind === 'request' && !parts.hasBody && head.framing.kind === 'length' && head.framing.length > 0;
  return isShort ? headProblem(400, 'a Content-Length without its body') : head;
};

const CONNECTION_ROLES: ReadonlySet<string> = new Set(['host', 'connection', 'upgrade', 'coding']);
