// Reads a request's head: strictly, once, and into what the ingress needs to route, frame and pass it on.
import { hostOfAuthority } from './authority.ts';
import { classAt, DIGIT, SP, TARGET, TOKEN } from './char-classes.ts';
import { FieldReader } from './field-reader.ts';
import { type Framing, NO_BODY, readFraming } from './framing.ts';
import { type HeadProblem, headProblem } from './head-problem.ts';
import type { HeaderField } from './header-field.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './http1-bounds.ts';
import { eachListItem } from './list-items.ts';
import { readTarget, type Target } from './request-target.ts';

export type HttpVersion = '1.0' | '1.1';

export interface RequestHead {
  readonly kind: 'request';
  /** As received, to the final empty line; of one that came in parts, as HTTP/1.1 would write it, rendered when it is asked for. */
  readonly text: string;
  readonly method: string;
  /** As received. */
  readonly target: string;
  /** To send on: path and query, or `*`. */
  readonly path: string;
  readonly version: HttpVersion;
  readonly headers: readonly HeaderField[];
  /** To route by: lower case, no port, an IPv6 address in brackets. Empty for an HTTP/1.0 request that names none. */
  readonly host: string;
  /** `host[:port]` as received: of the target when that is absolute (it overrules Host: RFC 9112, 3.2.2), else of Host. */
  readonly authority: string;
  readonly framing: Framing;
  /** The visitor wants to go on after this request. */
  readonly keepAlive: boolean;
  /** Protocols asked for, h2c left out; null: none, or not in a way that counts. */
  readonly upgrade: string | null;
  readonly expectContinue: boolean;
  /** The visitor takes trailers: `TE: trailers`. */
  readonly teTrailers: boolean;
  /** Fields that `Connection` names, lower case: they end here. */
  readonly connectionNames: readonly string[] | null;
}

/** From the request line up to and with the empty line, one character per byte (latin1). */
export const parseRequestHead = (
  text: string,
  bounds: Pick<Http1Bounds, 'fieldsMax'> = HTTP1_BOUNDS,
): RequestHead | HeadProblem => {
  if (!text.endsWith('\r\n\r\n')) return headProblem(400, 'the head does not end with an empty line');
  let at = 0;
  while ((classAt(text, at) & TOKEN) !== 0) at += 1;
  if (at === 0 || text.charCodeAt(at) !== SP) return headProblem(400, 'the request line has no method');
  const method = text.slice(0, at);
  const targetStart = at + 1;
  at = targetStart;
  while ((classAt(text, at) & TARGET) !== 0) at += 1;
  if (at === targetStart || text.charCodeAt(at) !== SP) return headProblem(400, 'the request target is malformed');
  const target = text.slice(targetStart, at);
  const version = versionAt(text, at + 1);
  if (typeof version !== 'string') return version;
  if (method === 'CONNECT') return headProblem(501, 'CONNECT is not served here');
  const reading = readTarget(method, target);
  if (reading.kind !== 'target') return headProblem(400, reading.reason);
  const fields = new FieldReader();
  const problem = fields.read(text, at + 11, bounds.fieldsMax);
  return problem ?? requestHeadOf(text, method, target, version, reading, fields);
};

/** What the request line and the fields say together. */
export const requestHeadOf = (
  text: string,
  method: string,
  target: string,
  version: HttpVersion,
  reading: Target,
  fields: FieldReader,
): RequestHead | HeadProblem => {
  if (fields.hostCount > 1) return headProblem(400, 'Host is repeated');
  if (fields.hostCount === 0 && version === '1.1') return headProblem(400, 'Host is missing');
  // Also a Host that the target overrules must be one: another reader may look at it.
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
    upgrade: version === '1.1' && fields.upgradeOption && fields.upgrade !== null ? wanted(fields.upgrade) : null,
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
    ? headProblem(505, 'only HTTP/1.1 and HTTP/1.0 are spoken here')
    : headProblem(400, 'the request line is malformed');
};

/**
 * h2c would carry a whole HTTP/2 connection past routing, forwarded headers and captures, and RFC 9113 has taken it back.
 * An upgrade may be ignored by any server, so leaving it out is always legal.
 */
const wanted = (upgrade: string): string | null => {
  if (!upgrade.toLowerCase().includes('h2c')) return upgrade === '' ? null : upgrade;
  const kept: string[] = [];
  eachListItem(upgrade, (protocol) => {
    if (!protocol.toLowerCase().startsWith('h2c')) kept.push(protocol);
  });
  return kept.length === 0 ? null : kept.join(', ');
};
