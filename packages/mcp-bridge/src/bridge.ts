// `bridgeStdio`: a stdio MCP server as a web-standard handler. Callers of both eras are served whatever the server speaks.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createMcpHandler, isJsonContentType } from '@modelcontextprotocol/server';
import { type Clock, randomToken } from '@tunnel/runtime';
import { bearerChallenge } from './bearer.ts';
import { allowedTools, makeBridgedServer, SESSION_HEADER } from './bridged-server.ts';
import type { ServerCommand } from './child-process.ts';
import { BRIDGE_LIMITS } from './limits.ts';
import { OpenCalls } from './open-calls.ts';
import { type KeeperEvents, ServerKeeper } from './server-keeper.ts';

export interface BridgeOptions extends Partial<Omit<KeeperEvents, 'onListChanged'>> {
  readonly clock: Clock;
  /** Of the program that bridges: the server is told who asks. */
  readonly version: string;
  /** Of the bearer that callers have to show; null: anybody may call. */
  readonly tokenHash: string | null;
  /** Left out: every tool. */
  readonly allowTools?: readonly string[] | undefined;
  /** Aborted: the start is given up. */
  readonly signal?: AbortSignal;
}

export interface Bridge {
  /** Requests to its one path: whoever mounts it knows which. */
  fetch(request: Request): Promise<Response>;
  /** What the server is called, the revision it speaks, and the names of the tools that callers see. */
  readonly server: { readonly name: string; readonly protocolVersion: string; readonly tools: readonly string[] };
  /** Of the server; null while it is away. */
  readonly pid: number | null;
  /** Calls under way at the server. */
  readonly openCalls: number;
  /** Calls under way may end; then as close(). Callers that wait for changes of the lists are let go. */
  finish(): Promise<void>;
  /** Ends the server, and every call with it. */
  close(): Promise<void>;
}

/** Rejects with CLIENT_MCP_SERVER when the server does not start the first time. */
export const bridgeStdio = async (command: ServerCommand, options: BridgeOptions): Promise<Bridge> => {
  const { clock, version, signal } = options;
  const calls = new OpenCalls();
  const allowTools = options.allowTools === undefined ? null : new Set(options.allowTools);
  const keeper = new ServerKeeper({
    command,
    clientInfo: { name: 'tunnel-mcp-publish', version },
    clock,
    onEnded: (reason, restartInMs) => options.onEnded?.(reason, restartInMs),
    onRestarted: (facts) => {
      for (const list of ['tools', 'prompts', 'resources'] as const) tell(list);
      options.onRestarted?.(facts);
    },
    onListChanged: (list) => tell(list),
    onStderr: (line) => options.onStderr?.(line),
    onOddity: (reason) => options.onOddity?.(reason),
  });
  const handler = createMcpHandler((context) => makeBridgedServer({ keeper, calls, allowTools }, context), {
    // A tool may take minutes: the answer begins at once and is kept alive, or whoever stands between would give it up.
    responseMode: 'sse',
    maxSubscriptions: BRIDGE_LIMITS.SUBSCRIPTIONS_MAX,
    onerror: (error) => options.onOddity?.(error.message),
  });
  const tell = (list: 'tools' | 'prompts' | 'resources'): void => handler.notify[`${list}Changed`]();
  const giveUp = (): void => void keeper.close();
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    await keeper.start();
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
  const close = async (): Promise<void> => {
    await Promise.all([keeper.close(), handler.close()]);
  };
  const answer = new Answers(handler.fetch, calls, options.tokenHash);
  return {
    fetch: (request) => answer.to(request),
    get server() {
      const { facts } = keeper;
      const { name } = facts.info;
      return {
        name,
        protocolVersion: facts.protocolVersion,
        tools: allowedTools(facts, allowTools).map((tool) => tool.name),
      };
    },
    get pid() {
      return keeper.pid;
    },
    get openCalls() {
      return calls.size;
    },
    finish: async () => {
      await calls.idle();
      // The last answer is written in the same turn that ends its call.
      await nextTurn();
      await close();
    },
    close,
  };
};

type HandleParsed = (request: Request, options: { parsedBody: unknown }) => Promise<Response>;

/** What stands before the protocol: who may call, from where, how much, and how many at once. */
class Answers {
  readonly #handle: HandleParsed;
  readonly #calls: OpenCalls;
  readonly #tokenHash: string | null;

  constructor(handle: HandleParsed, calls: OpenCalls, tokenHash: string | null) {
    this.#handle = handle;
    this.#calls = calls;
    this.#tokenHash = tokenHash;
  }

  async to(request: Request): Promise<Response> {
    const { headers } = request;
    const challenge = bearerChallenge(headers.get('authorization'), this.#tokenHash);
    if (challenge !== null) return refuse(401, 'a bearer token is needed', { 'www-authenticate': challenge });
    if (!isOwnOrigin(headers)) return refuse(403, 'this origin may not call');
    if (request.method !== 'POST') return refuse(405, 'only POST is served here', { allow: 'POST' });
    if (!isJsonContentType(headers.get('content-type'))) return refuse(415, 'content-type must be application/json');
    const body = await readBody(request);
    if (body === null) return refuse(413, `a message has at most ${BRIDGE_LIMITS.MESSAGE_MAX_BYTES} bytes`);
    const message = parse(body);
    if (message === undefined) return refuse(400, 'this is not JSON', {}, PARSE_ERROR);
    return this.#serve(request, message);
  }

  async #serve(request: Request, message: unknown): Promise<Response> {
    const { method, params, id } = (message ?? {}) as Message;
    const session = request.headers.get(SESSION_HEADER);
    const cancelled = params?.requestId;
    if (method === 'notifications/cancelled' && session !== null && isRequestId(cancelled)) {
      this.#calls.cancel(session, cancelled);
    }
    // Notifications pass: one may make room.
    if (this.#calls.isFull && (id !== undefined || Array.isArray(message))) {
      return refuse(429, `${BRIDGE_LIMITS.CALLS_MAX} calls are under way`, { 'retry-after': '1' });
    }
    const response = await this.#handle(request, { parsedBody: message });
    response.headers.set('x-accel-buffering', 'no');
    // Of the older revisions. It names the caller when it cancels a call, and holds nothing: any that is shown will do.
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

/** A browser says where a page comes from; only a page of the very address may call. */
const isOwnOrigin = (headers: Headers): boolean => {
  const origin = headers.get('origin');
  if (origin === null) return true;
  if (!URL.canParse(origin)) return false;
  return new URL(origin).host === (headers.get('host') ?? '').toLowerCase();
};

/** null: it is too long. */
const readBody = async (request: Request): Promise<string | null> => {
  const max = BRIDGE_LIMITS.MESSAGE_MAX_BYTES;
  if (Number(request.headers.get('content-length') ?? 0) > max) return null;
  if (request.body === null) return '';
  const parts: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop early cancels the rest.
  for await (const part of request.body as ReadableStream<Uint8Array>) {
    bytes += part.length;
    if (bytes > max) return null;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
};

/** undefined: it is not JSON. */
const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const refuse = (status: number, message: string, headers: Record<string, string> = {}, code = REFUSED): Response =>
  Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status, headers });
