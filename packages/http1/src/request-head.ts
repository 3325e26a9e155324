// Strict parser for request heads, from text or from parts. The result has all details the ingress needs to route, frame and forward the
// request.

import { classAt, DIGIT, eachListItem, isFieldValue, isToken, isVisible, SP, TARGET, TOKEN } from './characters.ts';
import { FieldReader, type HeadProblem, headProblem } from './field-reader.ts';
import { type FieldPairs, type HeaderField, linesOf, PartField, roleOf } from './fields.ts';
import { type Framing, NO_BODY, readFraming } from './framing.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './limits.ts';
import { hostOfAuthority, readTarget, type Target } from './request-target.ts';

export type HttpVersion = '1.0' | '1.1';

export interface RequestHead {
  readonly kind: 'request';
  /**
   * The head as received, including the final empty line. If the head was given in parts, the text that HTTP/1.1 would use, rendered on
   * first access.
   */
  readonly text: string;
  readonly method: string;
  /** Request target as received. */
  readonly target: string;
  /** Target to send to the service: path and query, or `*`. */
  readonly path: string;
  readonly version: HttpVersion;
  readonly headers: readonly HeaderField[];
  /**
   * Host for routing: in lower case, without a port, and with brackets around an IPv6 address. Empty for an HTTP/1.0 request without
   * Host.
   */
  readonly host: string;
  /** `host[:port]` as received: from an absolute target, which has priority over Host (RFC 9112, 3.2.2), otherwise from Host. */
  readonly authority: string;
  readonly framing: Framing;
  /** True if the visitor wants to keep the connection after this request. */
  readonly keepAlive: boolean;
  /** Requested upgrade protocols without h2c. Null if there are none, or if the request lacks `Connection: upgrade` or HTTP/1.1. */
  readonly upgrade: string | null;
  readonly expectContinue: boolean;
  /** True if the visitor accepts trailers (`TE: trailers`). */
  readonly teTrailers: boolean;
  /** Lower-case names of fields listed in `Connection`. These fields are not passed on. */
  readonly connectionNames: readonly string[] | null;
}

/** Parses a head from the request line to the final empty line, given as text with one character per byte (latin1). */
export const parseRequestHead = (
  text: string,
  bounds: Pick<Http1Bounds, 'fieldsMax'> = HTTP1_BOUNDS,
): RequestHead | HeadProblem => {
  if (!text.endsWith('\r\n\r\n')) return headProblem(400, 'the headers do not end with an empty line');
  let at = 0;
  while ((classAt(text, at) & TOKEN) !== 0) at += 1;
  if (at === 0 || text.charCodeAt(at) !== SP) return headProblem(400, 'the request line has no method');
  // GET is by far the most frequent method: a constant is faster to compare than a substring.
  const method = at === 3 && text.startsWith('GET') ? 'GET' : text.slice(0, at);
  const targetStart = at + 1;
  at = targetStart;
  while ((classAt(text, at) & TARGET) !== 0) at += 1;
  if (at === targetStart || text.charCodeAt(at) !== SP) return headProblem(400, 'the request target is malformed');
  const target = text.slice(targetStart, at);
  const version = versionAt(text, at + 1);
  if (typeof version !== 'string') return version;
  if (method === 'CONNECT') return headProblem(501, 'CONNECT is not supported');
  const reading = readTarget(method, target);
  if (reading.kind !== 'target') return headProblem(400, reading.reason);
  const fields = new FieldReader();
  const problem = fields.read(text, at + 11, bounds.fieldsMax);
  return problem ?? headOf(text, method, target, version, reading, fields);
};

/** Combines the request line and the fields, and checks rules that involve both. */
const headOf = (
  text: string,
  method: string,
  target: string,
  version: HttpVersion,
  reading: Target,
  fields: FieldReader,
): RequestHead | HeadProblem => {
  if (fields.hostCount > 1) return headProblem(400, 'Host is repeated');
  if (fields.hostCount === 0 && version === '1.1') return headProblem(400, 'Host is missing');
  // Host must be valid even if the target overrides it, because another parser may use it.
  const ownHost = fields.hostCount === 0 ? '' : hostOfAuthority(fields.host);
  const host = reading.authority === null ? ownHost : hostOfAuthority(reading.authority);
  if (ownHost === null || host === null) return headProblem(400, 'Host is not a host name with an optional port');
  const framing = readFraming(version, fields);
  if (framing?.kind === 'problem') return framing;
  return {
    kind: 'request',
    text,
    method,
    target,
    path: reading.path,
    version,
    headers: fields.fields,
    host,
    authority: reading.authority ?? fields.host,
    framing: framing ?? NO_BODY,
    keepAlive: !fields.close && (version === '1.1' || fields.keepAlive),
    upgrade:
      version === '1.1' && fields.upgradeOption && fields.upgrade !== null ? servedUpgrade(fields.upgrade) : null,
    expectContinue: fields.expectContinue && version === '1.1',
    teTrailers: fields.teTrailers,
    connectionNames: fields.named,
  };
};

const versionAt = (text: string, at: number): HttpVersion | HeadProblem => {
  if (text.startsWith('HTTP/1.1\r\n', at)) return '1.1';
  if (text.startsWith('HTTP/1.0\r\n', at)) return '1.0';
  const isVersion =
    text.startsWith('HTTP/', at) &&
    (classAt(text, at + 5) & DIGIT) !== 0 &&
    text[at + 6] === '.' &&
    (classAt(text, at + 7) & DIGIT) !== 0 &&
    text.startsWith('\r\n', at + 8);
  return isVersion
    ? headProblem(505, 'only HTTP/1.1 and HTTP/1.0 are supported')
    : headProblem(400, 'the request line is malformed');
};

/**
 * Removes h2c from the requested upgrade protocols: h2c would carry a whole HTTP/2 connection past routing, forwarded headers and
 * captures, and RFC 9113 has withdrawn it. A server can ignore any upgrade, so removing it is always legal.
 */
const servedUpgrade = (upgrade: string): string | null => {
  if (!upgrade.toLowerCase().includes('h2c')) return upgrade === '' ? null : upgrade;
  const kept: string[] = [];
  eachListItem(upgrade, (protocol) => {
    if (!protocol.toLowerCase().startsWith('h2c')) kept.push(protocol);
  });
  return kept.length === 0 ? null : kept.join(', ');
};

/** A request head given in parts, such as from HTTP/2, instead of as text. */
export interface RequestParts {
  readonly method: string;
  /** Value of the pseudo-header field `:path`. */
  readonly path: string;
  /** Value of `:authority`, or of Host. */
  readonly authority: string;
  /**
   * Header fields without pseudo-header fields and without Host. Content-Length is trusted, because the HTTP/2 code has checked it
   * against the data.
   */
  readonly headers: FieldPairs;
  /** True if a body follows. A body without Content-Length is sent in chunks. */
  readonly hasBody: boolean;
}

/**
 * Creates a request head from parts. The danger of this downgrade is a part that becomes more than one line, so all parts are checked.
 * Connection-specific fields are malformed in HTTP/2 (RFC 9113, 8.2.2) and are rejected, except for `TE: trailers`. The size of the head
 * is measured as its text in HTTP/1.1.
 */
export const requestHeadFromParts = (
  parts: RequestParts,
  bounds: Pick<Http1Bounds, 'fieldsMax' | 'headMaxBytes'> = HTTP1_BOUNDS,
): RequestHead | HeadProblem => {
  const { method, path, authority, hasBody } = parts;
  if (!isToken(method) || !isVisible(path) || !isVisible(authority)) {
    return headProblem(400, 'invalid character in a pseudo-header field');
  }
  // A target in absolute form would override the authority, although the connection was checked for the authority.
  if (!path.startsWith('/') && path !== '*') return headProblem(400, 'the request target is not a path');
  const given = fieldsOf(parts);
  if (!Array.isArray(given)) return given;
  if (method === 'CONNECT') return headProblem(501, 'CONNECT is not supported');
  const target = readTarget(method, path);
  if (target.kind !== 'target') return headProblem(400, target.reason);
  const fields = new FieldReader();
  const problem = fields.readParts(given, bounds.fieldsMax);
  if (problem !== null) return problem;
  const head = headOf('', method, path, '1.1', target, fields);
  if (head.kind === 'problem') return head;
  if (!hasBody && head.framing.kind === 'length' && head.framing.length > 0) {
    return headProblem(400, 'Content-Length without a body');
  }
  const requestLine = `${method} ${path} HTTP/1.1\r\n`;
  let bytes = requestLine.length + 2;
  for (const field of given) bytes += field.lineLength;
  if (bytes > bounds.headMaxBytes) return headProblem(431, `the headers are larger than ${bounds.headMaxBytes} bytes`);
  let text: string | null = null;
  return {
    ...head,
    // Rendered on demand, because only captures need the text.
    get text(): string {
      text ??= `${requestLine}${linesOf(given)}\r\n`;
      return text;
    },
  };
};

/** Returns the fields that the request would have in HTTP/1.1: Host comes first, and the coding of a body without a length comes last. */
const fieldsOf = ({ authority, headers, hasBody }: RequestParts): PartField[] | HeadProblem => {
  const fields = [new PartField('Host', authority, 'host')];
  let hasLength = false;
  for (const [name, value] of headers) {
    if (!isToken(name) || !isFieldValue(value)) {
      return headProblem(400, 'invalid character in a header field');
    }
    const role = roleOf(name);
    if (CONNECTION_ROLES.has(role)) return headProblem(400, 'HTTP/1.1 connection header in an HTTP/2 request');
    if (role === 'te') {
      if (value.trim().toLowerCase() !== 'trailers') return headProblem(400, 'TE other than trailers');
    } else if (role === 'length') hasLength = true;
    fields.push(new PartField(name, value, role));
  }
  if (hasBody && !hasLength) fields.push(new PartField('Transfer-Encoding', 'chunked', 'coding'));
  return fields;
};

const CONNECTION_ROLES: ReadonlySet<string> = new Set(['host', 'connection', 'upgrade', 'coding']);
