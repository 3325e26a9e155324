// The rows of the specification that this folder tests, in their order, and the names of their tests. rows.test.ts fails if a row has no
// test.

import { GROUP_ROWS } from '../group-rows.fixture.ts';
import { namesOfRows, numbered } from '../numbered.fixture.ts';
import { CONTRACT_ROWS } from './contract-rows.fixture.ts';

/** Sections that are numbered sentences. All other sections are tables. */
const RULES = new Set(['Authentication', 'Errors', 'Versioning']);

export const ROWS = {
  UserPublic: numbered([
    'id: string (uuid)',
    'email: string (email)',
    'display_name: string or null',
    'email_verified: boolean',
    'status: string',
    'auth_method: string; accounts of an external sign-in must use that flow',
    'created_at: string (date-time)',
  ]),
  ApiToken: numbered([
    'id: string',
    'label: string',
    'token_hash: SHA-256 of the raw token, which is never stored',
    'created_at: string (date-time)',
    'last_used_at: string (date-time) or null',
    'scope: string or null',
    'tier: string or null',
    'tunnel_limit: integer or null',
    'status: string',
    'unlimited: boolean',
    'tunnel_count: integer',
  ]),
  TunnelLogEntry: numbered([
    'id: string',
    'tunnel_id: string',
    'protocol: one of http, tcp, udp, p2p',
    'label: string',
    'registered_at: string (date-time)',
    'unregistered_at: string (date-time), null while the tunnel is active',
    'region_id: the edge region the tunnel ran in, or null',
    'request_count: integer',
    'bytes_proxied: integer',
  ]),
  UsageSummary: numbered([
    'active_tunnels: integer',
    'total_tunnels_30d: integer',
    'total_requests_30d: integer',
    'total_bytes_30d: integer',
    'plan: string',
    'tunnel_limit: integer or null',
  ]),
  'Usage chart point': numbered(['date: YYYY-MM-DD', 'tunnels: integer', 'requests: integer']),
  ...GROUP_ROWS,
  'Small bodies': numbered(['Error: {error}', 'Message: {message}', 'Ok: {ok}']),
  'Other lifecycles': numbered([
    'account, register: unverified, a mail is sent, login is refused',
    'account, GET verify-email with a valid token: verified',
    'tunnel log entry, the tunnel ends: unregistered_at is set, null before',
    'API key, DELETE /keys/{id}: clients that use it can no longer authenticate',
  ]),
  Auth: numbered([
    'POST /auth/register: 201 Message; 400; 409',
    'GET /auth/verify-email/{token}: 200 Message; 400',
    'POST /auth/login: 200 {access_token, user} and the cookie; 400; 401; 403',
    'POST /auth/logout: 204, clears the cookie',
    'POST /auth/refresh: 200 {access_token}; 401; 403',
    'GET /auth/me: 200 UserPublic; 401',
    'POST /auth/forgot-password: 200 Message, registered or not',
    'POST /auth/reset-password: 200 Message; 400',
  ]),
  'API keys': numbered([
    'GET /keys: 200 array of ApiToken; 401',
    'POST /keys: 201 {id, token}, the raw token in this response only; 400; 401',
    'DELETE /keys/{id}: 204; 401; 404 absent or not owned by the caller',
  ]),
  Usage: numbered([
    'GET /usage: 200 UsageSummary; 401',
    'GET /usage/chart: days 1 to 90, 30 by default; 200 array, one point per day; 401',
    'GET /usage/tunnels: limit and offset; 200 array of TunnelLogEntry, newest first; 401',
    'GET /usage/tunnels/{id}: 200 TunnelLogEntry of the caller; 401; 404',
    'GET /usage/tunnels/{id}/requests: limit; 200 object from the edge region; 400; 401; 404',
  ]),
  'Load balancing': numbered([
    'GET /load-balancing/groups: 200 {groups, warnings}, every group with a tunnel of the caller, from all regions; 401',
  ]),
  Health: numbered([
    'GET /health: 200 Ok whenever the process is up',
    'GET /health/db: 200 Ok when the database works; 503 when it is unreachable',
  ]),
  Authentication: numbered([
    'login returns a JWT for 15 minutes and sets an httpOnly cookie refresh_token for 30 days',
    'user-scoped endpoints require Authorization: Bearer; public ones need no header',
    'when the access token expires, refresh with the cookie returns a new one of 15 minutes',
    'logout clears the cookie',
    'a verified e-mail is needed to log in; accounts of an external sign-in cannot use a password',
    'tunnel clients authenticate with an API key, which is shown once; its hash is stored and listed',
    'the edge REST surfaces accept an admin token or a database-stored token',
    'group keys are sent only as a SHA-256 hash',
    'JWT claims, signing, lifetimes of mailed tokens: as decided',
  ]),
  Errors: numbered([
    'every error body is {error: string} with a 4xx or 5xx status',
    'what the statuses mean: 400, 401, 403, 404, 409, 503',
    'forgot-password returns 200 whether or not the address exists',
    'deleting or reading another user’s key or tunnel yields 404',
  ]),
  Limits: numbered([
    'access token lifetime: 15 minutes',
    'refresh cookie lifetime: 30 days',
    'password: at least 8 characters at register and reset',
    'GET /usage/chart days: default 30, 1 to 90',
    'GET /usage/tunnels limit: default 20, 1 to 100',
    'GET /usage/tunnels offset: default 0, minimum 0',
    'GET /usage/tunnels/{id}/requests limit: default 50, 1 to 100',
    'usage summary window: 30 days',
    'tunnel limits per key or plan',
  ]),
  Versioning: numbered([
    'the description is OpenAPI 3.1.0 and carries 0.2.24; paths carry no version',
    'the body of the request-capture endpoint follows the edge',
    'the load-balancing kill switch defaults to false',
  ]),
  Contract: CONTRACT_ROWS,
} as const;

export const row = namesOfRows(ROWS, RULES);
