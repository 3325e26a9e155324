// Parser for the response heads of a local service. Errors lead to a 502, because the visitor did nothing wrong.

import { CR, classAt, DIGIT, LF, SP, VALUE } from './characters.ts';
import { FieldReader, type HeadProblem, headProblem } from './field-reader.ts';
import { type FieldPairs, type HeaderField, linesOf, PartField, partFieldsOf } from './fields.ts';
import { CHUNKED, type Framing, NO_BODY, readFraming, UNTIL_CLOSE } from './framing.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './limits.ts';
import type { HttpVersion } from './request-head.ts';

export interface ResponseHead {
  readonly kind: 'response';
  /**
   * The head as received, including the final empty line. If the head was given in parts, the text that HTTP/1.1 would use, rendered on
   * first access.
   */
  readonly text: string;
  readonly status: number;
  readonly reason: string;
  readonly version: HttpVersion;
  readonly headers: readonly HeaderField[];
  readonly framing: Framing;
  /** Value of Content-Length, even if no body follows (HEAD, 304). */
  readonly contentLength: number | null;
  /** True if `Transfer-Encoding: chunked` was sent, even if no body follows. */
  readonly isChunked: boolean;
  /** True for a 1xx response, which precedes a final response. 101 counts as final. */
  readonly interim: boolean;
  /** True if the connection to the local service can carry another request after the body. */
  readonly keepAlive: boolean;
  /** Value of Upgrade: for a 101 the protocol of the bytes that follow, for a 426 the required protocol. */
  readonly upgrade: string | null;
  readonly connectionNames: readonly string[] | null;
}

/** The details of a request that the meaning of its response depends on. */
export interface AnsweredRequest {
  readonly method: string;
  readonly upgrade: string | null;
}

export const parseResponseHead = (
  text: string,
  request: AnsweredRequest,
  bounds: Pick<Http1Bounds, 'fieldsMax'> = HTTP1_BOUNDS,
): ResponseHead | HeadProblem => {
  if (!text.endsWith('\r\n\r\n')) return bad('the headers do not end with an empty line');
  const version = versionOf(text);
  if (version === null) return bad('the response does not start with HTTP/1.1 or HTTP/1.0');
  const status = statusAt(text, 9);
  if (status === null) return bad(BAD_STATUS);
  let at = 12;
  // Accept an empty reason without the space before it, because services often forget the space, and nothing depends on it.
  if (text.charCodeAt(at) === SP) at += 1;
  else if (text.charCodeAt(at) !== CR) return bad('the status line is malformed');
  const reasonStart = at;
  while ((classAt(text, at) & VALUE) !== 0) at += 1;
  if (text.charCodeAt(at) !== CR || text.charCodeAt(at + 1) !== LF) return bad('the status line is malformed');
  const fields = new FieldReader();
  const problem = fields.read(text, at + 2, bounds.fieldsMax);
  if (problem !== null) return bad(problem.reason);
  return headOf({ text, status, reason: text.slice(reasonStart, at), version, fields, request });
};

/** A response head given in parts, such as from HTTP/2. */
export interface ResponseParts {
  /** Value of the pseudo-header field `:status`, as received. */
  readonly status: string;
  /** Header fields without pseudo-header fields. */
  readonly fields: FieldPairs;
  /** True if no body follows; HTTP/1.1 then uses a length of 0. Otherwise a body without a length is sent in chunks. */
  readonly endsHere: boolean;
}

/** Creates a response head from parts, by the same rules as for a head given as text. */
export const responseHeadFromParts = (
  parts: ResponseParts,
  request: AnsweredRequest,
  bounds: Pick<Http1Bounds, 'fieldsMax'> = HTTP1_BOUNDS,
): ResponseHead | HeadProblem => {
  const given = partFieldsOf(parts.fields);
  if (given === null) return bad('invalid character in a header field');
  const status = statusAt(parts.status, 0);
  if (status === null) return bad(BAD_STATUS);
  if (parts.status.length !== 3) return bad('the status line is malformed');
  const isFramed = status < 200 || status === 204 || status === 304 || given.some(({ role }) => role === 'length');
  if (!isFramed) given.push(framingField(parts.endsHere));
  const fields = new FieldReader();
  const problem = fields.readParts(given, bounds.fieldsMax);
  if (problem !== null) return bad(problem.reason);
  const head = headOf({ text: '', status, reason: '', version: '1.1', fields, request });
  if (head.kind === 'problem') return head;
  let text: string | null = null;
  return {
    ...head,
    get text(): string {
      text ??= `HTTP/1.1 ${status} \r\n${linesOf(given)}\r\n`;
      return text;
    },
  };
};

const framingField = (endsHere: boolean): PartField =>
  endsHere ? new PartField('content-length', '0', 'length') : new PartField('transfer-encoding', 'chunked', 'coding');

const BAD_STATUS = 'the status is not a number from 100 to 599';

const statusAt = (text: string, at: number): number | null => {
  const isNumber = (classAt(text, at) & classAt(text, at + 1) & classAt(text, at + 2) & DIGIT) !== 0;
  const status = isNumber ? Number(text.slice(at, at + 3)) : 0;
  return status < 100 || status > 599 ? null : status;
};

const versionOf = (text: string): HttpVersion | null => {
  if (text.startsWith('HTTP/1.1 ')) return '1.1';
  return text.startsWith('HTTP/1.0 ') ? '1.0' : null;
};

interface ReadParts {
  readonly text: string;
  readonly status: number;
  readonly reason: string;
  readonly version: HttpVersion;
  readonly fields: FieldReader;
  readonly request: AnsweredRequest;
}

const headOf = ({ text, status, reason, version, fields, request }: ReadParts): ResponseHead | HeadProblem => {
  const declared = readFraming(version, fields);
  if (declared?.kind === 'problem') return bad(declared.reason);
  if (status === 101 && (request.upgrade === null || !fields.upgrade)) return bad('unexpected protocol switch');
  const isBodiless = status < 200 || status === 204;
  const framing = isBodiless || status === 304 || request.method === 'HEAD' ? NO_BODY : (declared ?? UNTIL_CLOSE);
  // The head announces a body for a response that cannot have a body. The service may send the body anyway, so the connection is not
  // reused.
  const isConfused = isBodiless && (declared === CHUNKED || (fields.contentLength ?? 0) > 0);
  return {
    kind: 'response',
    text,
    status,
    reason,
    version,
    headers: fields.fields,
    framing,
    contentLength: fields.contentLength,
    isChunked: declared === CHUNKED,
    interim: status < 200 && status !== 101,
    keepAlive:
      !fields.close &&
      (version === '1.1' || fields.keepAlive) &&
      framing !== UNTIL_CLOSE &&
      status !== 101 &&
      !isConfused,
    upgrade: status === 101 || status === 426 ? fields.upgrade : null,
    connectionNames: fields.named,
  };
};

const bad = (reason: string): HeadProblem => headProblem(502, reason);
