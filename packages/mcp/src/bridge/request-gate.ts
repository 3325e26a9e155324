// Checks HTTP requests before the MCP protocol handles them: authentication, origin, message size and the number of concurrent calls.
import { isJsonContentType } from '@modelcontextprotocol/server';
import { equalInConstantTime, randomId, randomToken, sha256Hex } from '@tunnel/runtime';
import { BRIDGE_LIMITS } from './bridge-limits.ts';
import { SESSION_HEADER } from './bridged-server.ts';
import type { OpenCalls } from './open-calls.ts';

const BEARER_CHARACTERS = 32;

/** Generates a bearer token: `mcp_` and 32 base62 characters (190 bits). */
export const makeBearer = (): string => randomId('mcp', BEARER_CHARACTERS);

/** Hashes a bearer token. Only the hash is kept. */
export const bearerHash = sha256Hex;

/** Syntax of bearer tokens (RFC 6750), with a minimum length against guessing. */
const BEARER = /^[A-Za-z0-9\-._~+/]{16,1024}=*$/;

/** Checks a bearer token. Returns an error message, or null if the token is valid. */
export const bearerProblem = (token: string): string | null =>
  BEARER.test(token) ? null : 'a bearer token must have 16 to 1024 characters: letters, digits or -._~+/';

/** Checks the Authorization header of a caller. Returns null if the caller is authorized, otherwise the value for WWW-Authenticate. */
export const bearerChallenge = (authorization: string | null, hash: string | null): string | null => {
  if (hash === null) return null;
  const shown = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  if (shown === undefined) return 'Bearer';
  return equalInConstantTime(bearerHash(shown), hash) ? null : 'Bearer error="invalid_token"';
};

type HandleParsed = (request: Request, options: { parsedBody: unknown }) => Promise<Response>;

export class RequestGate {
  readonly #handle: HandleParsed;
  readonly #calls: OpenCalls;
  readonly #tokenHash: string | null;
  #isShut = false;

  constructor(handle: HandleParsed, calls: OpenCalls, tokenHash: string | null) {
    this.#handle = handle;
    this.#calls = calls;
    this.#tokenHash = tokenHash;
  }

  /** Rejects all further requests with 503. */
  shut(): void {
    this.#isShut = true;
  }

  async answer(request: Request): Promise<Response> {
    const { headers } = request;
    const challenge = bearerChallenge(headers.get('authorization'), this.#tokenHash);
    if (challenge !== null) return refuse(401, 'a bearer token is required', { 'www-authenticate': challenge });
    if (!isOwnOrigin(headers)) return refuse(403, 'requests from this origin are not allowed');
    if (request.method !== 'POST') return refuse(405, 'only POST is supported', { allow: 'POST' });
    if (!isJsonContentType(headers.get('content-type'))) return refuse(415, 'content-type must be application/json');
    const body = await readBody(request);
    if (body === null) return refuse(413, `the message is larger than ${BRIDGE_LIMITS.MESSAGE_MAX_BYTES} bytes`);
    const message = parse(body);
    if (message === undefined) return refuse(400, 'the body is not valid JSON', {}, PARSE_ERROR);
    if (this.#isShut) return refuse(503, 'the MCP server behind this URL is shutting down');
    return this.#serve(request, message);
  }

  async #serve(request: Request, message: unknown): Promise<Response> {
    const { method, params, id } = (message ?? {}) as Message;
    const session = request.headers.get(SESSION_HEADER);
    const cancelled = params?.requestId;
    if (method === 'notifications/cancelled' && session !== null && isRequestId(cancelled)) {
      this.#calls.cancel(session, cancelled);
    }
    // Notifications pass even at the limit, because a cancellation can free a slot.
    if (this.#calls.isFull && (id !== undefined || Array.isArray(message))) {
      return refuse(429, `limit of ${BRIDGE_LIMITS.CALLS_MAX} concurrent calls reached`, { 'retry-after': '1' });
    }
    const response = await this.#handle(request, { parsedBody: message });
    response.headers.set('x-accel-buffering', 'no');
    // Session id of the older protocol revisions. The id only identifies the caller that cancels a call. No state is stored for a
    // session, so an id chosen by the caller is accepted.
    if (method === 'initialize' && response.ok) response.headers.set(SESSION_HEADER, session ?? randomToken());
    return response;
  }
}

interface Message {
  readonly method?: unknown;
  readonly id?: unknown;
  readonly params?: { readonly requestId?: unknown };
}

const PARSE_ERROR = -32700;
const REFUSED = -32000;

const isRequestId = (value: unknown): value is string | number =>
  typeof value === 'string' || typeof value === 'number';

/** Whether the request may come from a browser. Browsers send the page's origin, which must have the same host as the request. */
const isOwnOrigin = (headers: Headers): boolean => {
  const origin = headers.get('origin');
  if (origin === null) return true;
  if (!URL.canParse(origin)) return false;
  return new URL(origin).host === (headers.get('host') ?? '').toLowerCase();
};

/** Reads the body. Returns null if the body is too large. */
const readBody = async (request: Request): Promise<string | null> => {
  const max = BRIDGE_LIMITS.MESSAGE_MAX_BYTES;
  if (Number(request.headers.get('content-length') ?? 0) > max) return null;
  if (request.body === null) return '';
  const parts: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop early cancels the rest of the stream.
  for await (const part of request.body as ReadableStream<Uint8Array>) {
    bytes += part.length;
    if (bytes > max) return null;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
};

/** Parses JSON. Returns undefined for invalid JSON. */
const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const refuse = (status: number, message: string, headers: Record<string, string> = {}, code = REFUSED): Response =>
  Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status, headers });
