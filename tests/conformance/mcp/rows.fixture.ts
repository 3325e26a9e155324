// The decisions about MCP and OAuth, row by row, in the order in which they were written down.
import { namesOfRows, numbered } from '../numbered.fixture.ts';

export const ROWS = {
  Commands: numbered([
    'tunnel mcp, and tunnel-mcp: MCP on stdio, stdout carries the protocol alone, starts without key and network; SIGTERM: exit 0',
    'tunnel mcp-publish: <public_url>/mcp; ready has mcp_url and mcp_token, mcp_ and 32 base62 characters; 401 with WWW-Authenticate: Bearer without it',
    'tunnel-server oauth-client create, list, revoke: for MCP hosts that have no metadata document',
  ]),
  'Platform MCP': numbered([
    'POST /mcp: revisions 2026-07-28, 2025-11-25, 2025-06-18, stateless; others than POST 405; foreign Origin 403; over 256 KiB 413',
    'over calls_per_minute an account: 429 with Retry-After',
    '401: {error} and WWW-Authenticate with resource_metadata and scope; with a bad token also error="invalid_token"',
    'suspended account: 403; tokens of /auth/login: 401 here; MCP tokens anywhere else: 401',
    'scopes: tools outside are not listed; called: 403 insufficient_scope with the scope to ask for; API keys have all',
    'metrics: tunnel_mcp_calls_total{tool,outcome} (ok error refused), tunnel_oauth_grants',
  ]),
  Tools: numbered([
    'stdio has 13, /mcp all but open_tunnel and run_doctor; sorted; all with title, description, schemas and annotations; get_usage, list_keys on stdio only with a login',
    'read-only: all but open_tunnel, close_tunnel, replay_request; destructive: close_tunnel, replay_request',
    'open_tunnel: its result; MCP_P2P_SECRET_MISSING; MCP_TARGET_NOT_ALLOWED; MCP_TUNNEL_LIMIT at the eleventh',
    'close_tunnel: {tunnel_id, closed: true}; on stdio by name too',
    'list_tunnels: {tunnels, truncated}; fields of GET /api/tunnels, for ended ones of TunnelLogEntry',
    'list_requests, get_request: fields, redacted, untrusted: true',
    'replay_request: {request: {id, status, duration_ms}}',
    'wait_for_request: {request, waited_ms}; only requests that finish after the call; timeout_secs 1 to 300',
    'failures: isError, one text CODE: message Next: hint; another account’s tunnel is TUNNEL_UNKNOWN',
    'resources and prompts',
  ]),
  OAuth: numbered([
    'GET /.well-known/oauth-protected-resource/mcp, and without /mcp',
    'GET /.well-known/oauth-authorization-server; CORS * on these and on jwks.json',
    'GET /oauth/authorize: bad client or redirect URI 400 page; other errors to the redirect URI with error, state, iss; good: 303 to /app/consent; no scope: tunnels:read',
    'client documents: at most 64 KiB, no redirect, 200, JSON, client_id equal to the URL, redirect_uris of good schemes',
    'GET /oauth/requests/{id}: its fields; 404 unknown',
    'POST /oauth/requests/{id}/decision: fewer scopes, none 400, once, then 404; denied: access_denied',
    'POST /oauth/token: the answer and its errors; a code used twice: invalid_grant, and its grant is revoked',
    'POST /oauth/revoke: 200 always; the whole grant',
    'GET and DELETE /oauth/grants: fields; 204; its tokens are refused within 2 s',
  ]),
} as const;

export const row = namesOfRows(ROWS);
