// Public exports of the HTTP/1.1 package.
export { CHUNK_END, chunkLine, createBodyScanner, lastChunk } from './bodies.ts';
export { CapturedBody } from './capture/captured-body.ts';
export { editRequest } from './capture/edit-request.ts';
export { readableBody } from './capture/readable-body.ts';
export { eachListItem, isFieldValue, isToken, isVisible } from './characters.ts';
export { ChunkedBody, type ChunkedForm } from './chunked-body.ts';
export {
  type EdgeResponse,
  edgeResponseText,
  hasNoBody,
  pageText,
  redirectToHttps,
  redirectToPages,
  renderError,
} from './edge-response.ts';
export type { RequestEdit } from './edited-request.ts';
export type { HeadProblem } from './field-reader.ts';
export { fieldValueOf, type HeaderField, linesOf, onlyValueOf, PartField, roleOf } from './fields.ts';
export { BODY_BAD, BODY_INCOMPLETE, type BodyScanner, type BodySink, type Framing, NO_BODY } from './framing.ts';
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
export { HTTP1_BOUNDS, type Http1Bounds } from './limits.ts';
export { isSecretName, isTextual, REDACTED, redactFields, redactUrl, type ShownField } from './redact.ts';
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
  type ServiceTrace,
  type VisitorResponse,
} from './rewrite.ts';
export { trailersFromParts } from './trailers.ts';
