// Slow reference for heads in parts: written as HTTP/1.1 text, then parsed. Tests compare the fast implementation with it.

import { isFieldValue, isToken, isVisible } from './characters.ts';
import { type HeadProblem, headProblem } from './field-reader.ts';
import { type FieldPairs, type HeaderField, roleOf } from './fields.ts';
import { HTTP1_BOUNDS } from './limits.ts';
import { parseRequestHead, type RequestHead, type RequestParts } from './request-head.ts';
import { type AnsweredRequest, parseResponseHead, type ResponseHead, type ResponseParts } from './response-head.ts';
import { readTrailers } from './trailers.ts';

export const requestHeadByText = (parts: RequestParts): RequestHead | HeadProblem => {
  const { method, path, authority } = parts;
  if (!isToken(method) || !isVisible(path) || !isVisible(authority)) {
    return headProblem(400, 'invalid character in a pseudo-header field');
  }
  if (!path.startsWith('/') && path !== '*') return headProblem(400, 'the request target is not a path');
  let text = `${method} ${path} HTTP/1.1\r\nHost: ${authority}\r\n`;
  let hasLength = false;
  for (const [name, value] of parts.headers) {
    if (!isToken(name) || !isFieldValue(value)) {
      return headProblem(400, 'invalid character in a header field');
    }
    const role = roleOf(name);
    if (['host', 'connection', 'upgrade', 'coding'].includes(role)) {
      return headProblem(400, 'HTTP/1.1 connection header in an HTTP/2 request');
    }
    if (role === 'te' && value.trim().toLowerCase() !== 'trailers') return headProblem(400, 'TE other than trailers');
    if (role === 'length') hasLength = true;
    text += `${name}: ${value}\r\n`;
  }
  if (parts.hasBody && !hasLength) text += 'Transfer-Encoding: chunked\r\n';
  const head = parseRequestHead(`${text}\r\n`);
  if (head.kind === 'problem') return head;
  const isShort = !parts.hasBody && head.framing.kind === 'length' && head.framing.length > 0;
  if (isShort) return headProblem(400, 'Content-Length without a body');
  const { headMaxBytes } = HTTP1_BOUNDS;
  return head.text.length > headMaxBytes ? headProblem(431, `the headers are larger than ${headMaxBytes} bytes`) : head;
};

export const responseHeadByText = (
  { status, fields, endsHere }: ResponseParts,
  request: AnsweredRequest,
): ResponseHead | HeadProblem => {
  const lines = linesOf(fields);
  if (lines === null) return headProblem(502, 'invalid character in a header field');
  const code = Number(status);
  const isFramed = code < 200 || code === 204 || code === 304 || /^content-length:/im.test(lines);
  const framing = endsHere ? 'content-length: 0\r\n' : 'transfer-encoding: chunked\r\n';
  return parseResponseHead(`HTTP/1.1 ${status} \r\n${lines}${isFramed ? '' : framing}\r\n`, request);
};

/** Returns null if the trailers are invalid. */
export const trailersByText = (fields: FieldPairs): readonly HeaderField[] | null => {
  const lines = linesOf(fields);
  if (lines === null || lines.length > HTTP1_BOUNDS.trailersMaxBytes) return null;
  const trailers = readTrailers(`${lines}\r\n`, HTTP1_BOUNDS.fieldsMax);
  return trailers.kind === 'problem' ? null : trailers.fields;
};

const linesOf = (fields: FieldPairs): string | null => {
  let lines = '';
  for (const [name, value] of fields) {
    if (!isToken(name) || !isFieldValue(value)) return null;
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
};
