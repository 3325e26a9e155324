// The door of the HTTP/1.1 rules.
export type { BodyScanner, BodySink } from './body-scanner.ts';
export { BODY_BAD, BODY_INCOMPLETE } from './body-scanner.ts';
export { isFieldValue, isToken } from './char-classes.ts';
export { CHUNK_END, chunkLine, lastChunk } from './chunk-text.ts';
export { ChunkedBody, type ChunkedForm } from './chunked-body.ts';
export { type ErrorWords, type RenderedError, renderError } from './error-page.ts';
export { forwardedForOf, forwardedProtoOf } from './forwarded-claims.ts';
export type { Framing } from './framing.ts';
export type { HeadProblem } from './head-problem.ts';
export {
  findHeadEnd,
  HEAD_BAD_LINE,
  HEAD_INCOMPLETE,
  HEAD_TOO_LONG,
  type HeadSearch,
  newHeadSearch,
  resetHeadSearch,
} from './head-search.ts';
export { fieldValueOf, type HeaderField } from './header-field.ts';
export { HTTP1_BOUNDS, type Http1Bounds } from './http1-bounds.ts';
export {
  type OwnHeader,
  type OwnResponse,
  type OwnResponseOptions,
  ownResponseText,
  reasonOf,
} from './own-response.ts';
export { LengthBody } from './plain-body.ts';
export { isSecretName, REDACTED, redactBody, redactFields, redactForm, redactUrl, type ShownField } from './redact.ts';
export { redactJson } from './redact-json.ts';
export { redirectToHttps } from './redirect.ts';
export {
  requestFieldsFor,
  requestHeadFor,
  type ServiceRequestOptions,
} from './request-for-service.ts';
export { type RequestParts, requestHeadFromParts } from './request-from-parts.ts';
export { type HttpVersion, parseRequestHead, type RequestHead } from './request-head.ts';
export {
  endToEndFields,
  responseHeadFor,
  type VisitorResponse,
  type VisitorResponseOptions,
} from './response-for-visitor.ts';
export { type AnsweredRequest, parseResponseHead, type ResponseHead, responseHeadFromParts } from './response-head.ts';
export { scannerOf } from './scanner-of-framing.ts';
export { isTextual } from './textual.ts';
export { trailersFromParts } from './trailers.ts';
