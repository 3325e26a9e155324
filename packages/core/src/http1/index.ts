// The door of the HTTP/1.1 rules.
export { HTTP1_BOUNDS, type Http1Bounds } from '../limits.ts';
export { CHUNK_END, chunkLine, lastChunk, scannerOf } from './bodies.ts';
export { ChunkedBody, type ChunkedForm } from './chunked-body.ts';
export { type EditProblem, editedHead, isEdit, markProblem, type RequestEdit } from './edited-request.ts';
export type { HeadProblem } from './field-reader.ts';
export { fieldValueOf, type HeaderField } from './fields.ts';
export type { BodyScanner, BodySink, Framing } from './framing.ts';
export { BODY_BAD, BODY_INCOMPLETE, NO_BODY } from './framing.ts';
export { NOT_PLAIN, newPlainHead, scanRequestHead, scanResponseHead } from './head-scan.ts';
export {
  findHeadEnd,
  HEAD_BAD_LINE,
  HEAD_INCOMPLETE,
  HEAD_TOO_LONG,
  type HeadSearch,
  newHeadSearch,
  resetHeadSearch,
} from './head-search.ts';
export {
  hasNoBody,
  type OwnResponse,
  ownResponseText,
  reasonOf,
  redirectToHttps,
  redirectToPages,
  renderError,
} from './own-response.ts';
export { putBackInBody } from './put-back.ts';
export {
  isSecretName,
  isTextual,
  REDACTED,
  redactBody,
  redactFields,
  redactJson,
  redactUrl,
  type ShownField,
} from './redact.ts';
export { type HttpVersion, parseRequestHead, type RequestHead, requestHeadFromParts } from './request-head.ts';
export { hostOfAuthority, isHostHeader } from './request-target.ts';
export { parseResponseHead, type ResponseHead, responseHeadFromParts } from './response-head.ts';
export {
  endToEndFields,
  forwardedForOf,
  forwardedProtoOf,
  requestFieldsFor,
  requestHeadFor,
  responseHeadFor,
  type ServiceRequestOptions,
  type VisitorResponse,
} from './rewrite.ts';
export { trailersFromParts } from './trailers.ts';
