// Handles one MCP message from an authenticated caller, from the limits to the response. Every call gets a new server, built for the
// caller's scopes. Nothing outlives the call, so a caller that disconnects leaves no state behind.
import {
  type AuthInfo,
  createMcpHandler,
  isLegacyRequest,
  type McpHttpHandler,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { Fault } from '@tunnel/errors';
import { createToolServer, type ToolFacts, type ToolHost, type ToolOutcome } from '@tunnel/mcp/tools';
import type { Clock, Logger } from '@tunnel/runtime';
import { LIMITS } from '../limits.ts';
import { CallLimits } from './call-limits.rules.ts';
import { ListingAnswers } from './listing-answers.ts';
import type { McpCaller } from './mcp-caller.ts';
import { asksForProgress, calledTool, type McpMessage, saysRevision } from './mcp-message.ts';

/**
 * Maximum number of open calls of one account to /mcp. A call can wait for minutes.
 * @limit mcp: Platform: concurrent calls per account | 429 `MCP_CALLS_OPEN`
 */
export const MCP_OPEN_CALLS_MAX = 20;
/**
 * Maximum duration of a call. Longer than the longest wait of a tool. A client that only listens, or does not read its response, has to
 * present its token again.
 * @limit mcp: Platform: call, time | the call is cut off
 */
export const MCP_CALL_MAX_MS = 330_000;
/** Retry time sent to a caller with too many open calls. */
const MCP_RETRY_AFTER_SECS = 1;
/** Interval of keep-alives on streamed responses, so that proxies keep the connection open. */
const MCP_ALIVE_MS = 15_000;
/** Maximum number of /mcp streams of all accounts on which hosts wait for changed lists. */
const MCP_SUBSCRIPTIONS_MAX = 1000;

export interface McpEndpointOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  readonly callsPerMinute: number;
  readonly hostFor: (caller: McpCaller) => ToolHost;
  readonly onCall: (tool: ToolFacts['name'], outcome: ToolOutcome['outcome']) => void;
}

/** An MCP call received over HTTP. */
export interface McpHttpCall {
  readonly request: Request;
  readonly message: McpMessage;
  /** Returns a request header. The name must be in lower case. */
  header(name: string): string | undefined;
  /** Registers a function that runs once, when the response has been sent or the caller has disconnected. */
  onOver(run: () => void): void;
  /** Aborts a running call by closing its connection. */
  cut(): void;
}

const WINDOW_MS = 60_000;
/** Status of a response to a caller that has disconnected; never delivered. */
const CALLER_GONE = 499;

export class McpEndpoint {
  readonly #options: McpEndpointOptions;
  readonly #limits: CallLimits;
  readonly #listings = new ListingAnswers();
  readonly #modern: McpHttpHandler;

  constructor(options: McpEndpointOptions) {
    this.#options = options;
    this.#limits = new CallLimits({
      openMax: MCP_OPEN_CALLS_MAX,
      perWindow: options.callsPerMinute,
      windowMs: WINDOW_MS,
      accountsMax: LIMITS.KNOWN_USERS_MAX,
    });
    this.#modern = createMcpHandler(({ authInfo }) => this.#serverOf(authInfo), {
      legacy: 'reject',
      keepAliveMs: MCP_ALIVE_MS,
      maxSubscriptions: MCP_SUBSCRIPTIONS_MAX,
      onerror: (error) => options.logger.debug({ reason: error.message }, 'a message to /mcp was rejected'),
    });
  }

  /** Answers a call. Throws MCP_SCOPE_MISSING, MCP_CALLS_OPEN and MCP_CALLS_THROTTLED. */
  async answer(caller: McpCaller, call: McpHttpCall): Promise<Response> {
    const tool = calledTool(call.message);
    try {
      refuseOutsideScope(caller, tool);
      this.#begin(caller, call);
    } catch (fault) {
      if (tool !== null) this.#options.onCall(tool.name, 'refused');
      throw fault;
    }
    const { message, header } = call;
    const listing = this.#listings.keyOf(caller, message, header);
    if (listing === null) return this.#serve(caller, call);
    const known = this.#listings.find(listing, message);
    return known ?? this.#listings.keep(listing, message, await this.#serve(caller, call));
  }

  async #serve(caller: McpCaller, call: McpHttpCall): Promise<Response> {
    const { request, message } = call;
    const authInfo = authInfoOf(caller);
    const isLegacy = !saysRevision(message) && (await isLegacyRequest(request, message));
    if (isLegacy) return serveLegacy(this.#serverOf(authInfo), call);
    return this.#modern.fetch(request, { authInfo, parsedBody: message });
  }

  #begin({ actor }: McpCaller, call: McpHttpCall): void {
    const verdict = this.#limits.begin(actor.userId, this.#options.clock.monotonic());
    if (verdict.allowed) {
      const tooLong = this.#options.clock.setTimeout(() => call.cut(), MCP_CALL_MAX_MS);
      call.onOver(() => {
        tooLong.cancel();
        this.#limits.ended(actor.userId);
      });
      return;
    }
    if (verdict.reason === 'open') {
      throw new Fault('MCP_CALLS_OPEN', { limit: MCP_OPEN_CALLS_MAX, seconds: MCP_RETRY_AFTER_SECS });
    }
    const seconds = Math.max(1, Math.ceil(verdict.retryAfterMs / 1000));
    throw new Fault('MCP_CALLS_THROTTLED', { limit: this.#options.callsPerMinute, seconds });
  }

  #serverOf(authInfo: AuthInfo | undefined): McpServer {
    const { clock, version, hostFor, onCall } = this.#options;
    const caller = authInfo?.extra?.['caller'] as McpCaller;
    return createToolServer(hostFor(caller), {
      version,
      clock,
      scopes: caller.scopes,
      onCall: ({ tool, outcome }) => onCall(tool, outcome),
    });
  }
}

/**
 * Throws MCP_SCOPE_MISSING for a tool outside the token's scopes. Checked before a server is created, so that the program can ask for
 * more scopes.
 */
const refuseOutsideScope = ({ scopes }: McpCaller, tool: ToolFacts | null): void => {
  if (tool === null || tool.scope === null || scopes.has(tool.scope)) return;
  throw new Fault('MCP_SCOPE_MISSING', { tool: tool.name, scope: tool.scope });
};

/**
 * Wraps the caller as AuthInfo, only to hand the caller through the SDK to the function that creates servers. The SDK makes no other use
 * of AuthInfo.
 */
const authInfoOf = (caller: McpCaller): AuthInfo => ({
  token: '',
  clientId: caller.access.kind,
  scopes: [...caller.scopes],
  extra: { caller },
});

/**
 * Serves the protocol revisions of 2025, without a session. The SDK's own handler streams every response; here a stream is sent only on
 * request for progress, as in the revision of 2026.
 */
const serveLegacy = async (server: McpServer, { request, message, onOver }: McpHttpCall): Promise<Response> => {
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: !asksForProgress(message),
    keepAliveMs: MCP_ALIVE_MS,
  });
  // The server connects before the call can end. A server closed before connecting would still handle the request.
  await server.connect(transport);
  let isOver = false;
  // A server closed during a request never responds, so the end of the call resolves the response.
  const gone = new Promise<Response>((resolve) => {
    onOver(() => {
      isOver = true;
      void server.close();
      resolve(new Response(null, { status: CALLER_GONE }));
    });
  });
  return isOver ? gone : Promise.race([transport.handleRequest(request, { parsedBody: message }), gone]);
};
