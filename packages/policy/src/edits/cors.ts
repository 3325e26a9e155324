// CORS rules: the response to a preflight, and the fields added to other cross-origin responses.

import { type EdgeResponse, fieldValueOf, isFieldValue, isToken } from '@tunnel/http1';
import type { Cors } from '../policy.ts';
import type { HeaderPair, PolicyRequest, ResponseEdit } from '../policy-step.ts';

/** Returns true for a CORS preflight. The edge responds, and the service gets no request. */
export const isPreflight = (request: PolicyRequest): boolean =>
  request.method === 'OPTIONS' &&
  fieldValueOf(request.headers, 'origin') !== null &&
  fieldValueOf(request.headers, 'access-control-request-method') !== null;

/** Returns the value of Access-Control-Allow-Origin, or null if the origin is not allowed. */
const allowedOrigin = (cors: Cors, request: PolicyRequest): string | null => {
  const origin = fieldValueOf(request.headers, 'origin');
  if (origin === null || !isFieldValue(origin)) return null;
  const lower = origin.toLowerCase();
  if (cors.origins.some((one) => one !== '*' && one.toLowerCase() === lower)) return origin;
  // `*` is never combined with credentials: every site could then read private data of the visitor.
  return cors.origins.includes('*') && !cors.credentials ? '*' : null;
};

/** Answers a CORS preflight request with a 204. Origins that are not allowed get no CORS fields. */
export const preflightResponse = (cors: Cors, request: PolicyRequest): EdgeResponse => {
  const origin = allowedOrigin(cors, request);
  const vary: HeaderPair = ['vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'];
  if (origin === null) return { status: 204, headers: [vary], body: '' };
  const method = fieldValueOf(request.headers, 'access-control-request-method') ?? '';
  const asked = fieldValueOf(request.headers, 'access-control-request-headers');
  const headers: HeaderPair[] = [['access-control-allow-origin', origin]];
  if (cors.credentials) headers.push(['access-control-allow-credentials', 'true']);
  // A CORS rule without methods allows the requested method.
  const methods = cors.methods ?? (isToken(method) ? [method] : []);
  if (methods.length > 0) headers.push(['access-control-allow-methods', methods.join(', ')]);
  const names = cors.headers?.join(', ') ?? asked;
  if (names !== null && names !== '') headers.push(['access-control-allow-headers', names]);
  headers.push(['access-control-max-age', String(cors.max_age_secs)], vary);
  return { status: 204, headers, body: '' };
};

/** Returns the CORS fields of a response. For other origins the list is empty, and the service's CORS fields are still removed. */
export const corsEdit = (cors: Cors, request: PolicyRequest): ResponseEdit => {
  const origin = allowedOrigin(cors, request);
  if (origin === null) return NO_CORS;
  const fields: HeaderPair[] = [['access-control-allow-origin', origin]];
  if (cors.credentials) fields.push(['access-control-allow-credentials', 'true']);
  if (cors.expose !== undefined && cors.expose.length > 0) {
    fields.push(['access-control-expose-headers', cors.expose.join(', ')]);
  }
  return { kind: 'cors', fields };
};

const NO_CORS: ResponseEdit = { kind: 'cors', fields: [] };
