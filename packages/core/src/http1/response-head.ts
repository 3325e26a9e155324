// Reads the head of a local service's response. What is wrong with it is a 502: the visitor did nothing.
import { CR, classAt, DIGIT, LF, SP, VALUE } from './char-classes.ts';
import { FieldReader } from './field-reader.ts';
import { CHUNKED, type Framing, NO_BODY, readFraming, UNTIL_CLOSE } from './framing.ts';
import { type HeadProblem, headProblem } from './head-problem.ts';
import type { HeaderField } from './header-field.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './http1-bounds.ts';
import type { HttpVersion } from './request-head.ts';

export interface ResponseHead {
  readonly kind: 'response';
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
  if (!text.endsWith('\r\n\r\n')) return bad('its head does not end with an empty line');
  const version = versionOf(text);
  if (version === null) return bad('it does not begin with HTTP/1.1 or HTTP/1.0');
  const isNumber = (classAt(text, 9) & classAt(text, 10) & classAt(text, 11) & DIGIT) !== 0;
  const status = isNumber ? Number(text.slice(9, 12)) : 0;
  if (status < 100 || status > 599) return bad('its status is not a number from 100 to 599');
  let at = 12;
  // The space before an empty reason is often forgotten; nothing depends on it.
  if (text.charCodeAt(at) === SP) at += 1;
  else if (text.charCodeAt(at) !== CR) return bad('its status line is malformed');
  const reasonStart = at;
  while ((classAt(text, at) & VALUE) !== 0) at += 1;
  if (text.charCodeAt(at) !== CR || text.charCodeAt(at + 1) !== LF) return bad('its status line is malformed');
  const fields = new FieldReader();
  const problem = fields.read(text, at + 2, bounds.fieldsMax);
  if (problem !== null) return bad(problem.reason);
  const declared = readFraming(version, fields);
  if (declared?.kind === 'problem') return bad(declared.reason);
  if (status === 101 && (request.upgrade === null || !fields.upgrade)) return bad('it switches protocols unasked');
  return headOf({ text, status, reason: text.slice(reasonStart, at), version, fields, declared, request });
};

const versionOf = (text: string): HttpVersion | null => {
  if (text.startsWith('HTTP/1.1 ')) return '1.1';
  return text.startsWith('HTTP/1.0 ') ? '1.0' : null;
};

interface Parts {
  readonly text: string;
  readonly status: number;
  readonly reason: string;
  readonly version: HttpVersion;
  readonly fields: FieldReader;
  readonly declared: Framing | null;
  readonly request: AnsweredRequest;
}

const headOf = ({ text, status, reason, version, fields, declared, request }: Parts): ResponseHead => {
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
