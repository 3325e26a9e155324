// Reads the head of a local service's response. What is wrong with it is a 502: the visitor did nothing.

import { CR, classAt, DIGIT, LF, SP, VALUE } from './characters.ts';
import { FieldReader, type HeadProblem, headProblem } from './field-reader.ts';
import { type FieldPairs, type HeaderField, linesOf, PartField, partFieldsOf } from './fields.ts';
import { CHUNKED, type Framing, NO_BODY, readFraming, UNTIL_CLOSE } from './framing.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './limits.ts';
import type { HttpVersion } from './request-head.ts';

export interface ResponseHead {
  readonly kind: 'response';
  /** As received, to the final empty line; of one that came in parts, as HTTP/1.1 would write it, rendered when it is asked for. */
  readonly text: string;
  readonly status: number;
  readonly reason: string;
  readonly version: HttpVersion;
  readonly headers: readonly HeaderField[];
  readonly framing: Framing;
  /** Of the Content-Length field, also where no body follows (HEAD, 304). */
  readonly contentLength: number | null;
  /** `Transfer-Encoding: chunked` was sent, also where no body follows. */
  readonly isChunked: boolean;
  /** A 1xx that announces a final response. 101 is final. */
  readonly interim: boolean;
  /** After the body the connection to the local service may carry another request. */
  readonly keepAlive: boolean;
  /** Of a 101 (what the bytes are from here on) or a 426. */
  readonly upgrade: string | null;
  readonly connectionNames: readonly string[] | null;
}

/** What a response means depends on the request that it answers. */
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
  // The space before an empty reason is often forgotten; nothing depends on it.
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

/** A response that came in parts (HTTP/2). */
export interface ResponseParts {
  /** `:status`, as received. */
  readonly status: string;
  /** Without pseudo-header fields. */
  readonly fields: FieldPairs;
  /** No body follows, which HTTP/1.1 says by a length of 0; else one without a length is in chunks. */
  readonly endsHere: boolean;
}

/** By the same rules as one that came as text. */
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
  // A body is announced where none can be: whoever wrote that may well send one, so nothing else goes over this connection.
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
