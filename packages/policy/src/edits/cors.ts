// Cross-origin rules: what a preflight is answered, and what an answer to such a request says.

import { type EdgeResponse, fieldValueOf, isFieldValue, isToken } from '@tunnel/http1';
import type { Cors } from '../policy.ts';
import type { HeaderPair, PolicyRequest, ResponseEdit } from '../policy-step.ts';

/** The browser asks before it sends; nothing of the service is touched. */
export const isPreflight = (request: PolicyRequest): boolean =>
  request.method === 'OPTIONS' &&
  fieldValueOf(request.headers, 'origin') !== null &&
  fieldValueOf(request.headers, 'access-control-request-method') !== null;

/** null: no such origin is known, and it is told nothing. */
const allowedOrigin = (cors: Cors, request: PolicyRequest): string | null => {
  const origin = fieldValueOf(request.headers, 'origin');
  if (origin === null || !isFieldValue(origin)) return null;
  const lower = origin.toLowerCase();
  if (cors.origins.some((one) => one !== '*' && one.toLowerCase() === lower)) return origin;
  // Never with credentials: every site could then read what is only this visitor's.
  return cors.origins.includes('*') && !cors.credentials ? '*' : null;
};

/** 204; to other origins without a field of it. */
export const preflightResponse = (cors: Cors, request: PolicyRequest): EdgeResponse => {
  const origin = allowedOrigin(cors, request);
  const vary: HeaderPair = ['vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'];
  if (origin === null) return { status: 204, headers: [vary], body: '' };
  const method = fieldValueOf(request.headers, 'access-control-request-method') ?? '';
  const asked = fieldValueOf(request.headers, 'access-control-request-headers');
  const headers: HeaderPair[] = [['access-control-allow-origin', origin]];
  if (cors.credentials) headers.push(['access-control-allow-credentials', 'true']);
  // None named: any that it asks for.
  const methods = cors.methods ?? (isToken(method) ? [method] : []);
  if (methods.length > 0) headers.push(['access-control-allow-methods', methods.join(', ')]);
  const names = cors.headers?.join(', ') ?? asked;
  if (names !== null && names !== '') headers.push(['access-control-allow-headers', names]);
  headers.push(['access-control-max-age', String(cors.max_age_secs)], vary);
  return { status: 204, headers, body: '' };
};

/** Of an origin that is not known no field: the service's own go all the same. */
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
