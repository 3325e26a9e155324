// One message of a caller who is known, from its limits to its answer: each is served by a server of its own, made for what the caller may do. Nothing
// outlives the call, so that a caller who leaves leaves nothing behind.
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
 * Calls of one account at /mcp at a time: each may wait for minutes.
 * @limit mcp: Platform: concurrent calls per account | 429 `MCP_CALLS_OPEN`
 */
export const MCP_OPEN_CALLS_MAX = 20;
/**
 * A call is cut after this time. The longest wait of a tool is over by then; a client that only listens, or does not read its answer, has to show its token again.
 * @limit mcp: Platform: call, time | the call is cut off
 */
export const MCP_CALL_MAX_MS = 330_000;
/** What a caller is told to wait while that many are open. */
const MCP_RETRY_AFTER_SECS = 1;
/** A sign of life on an answer that is a stream, so that proxies keep it open. */
const MCP_ALIVE_MS = 15_000;
/** Streams of /mcp on which hosts wait for changes of lists, of all accounts. */
const MCP_SUBSCRIPTIONS_MAX = 1000;

export interface McpEndpointOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  readonly callsPerMinute: number;
  readonly hostFor: (caller: McpCaller) => ToolHost;
  readonly onCall: (tool: ToolFacts['name'], outcome: ToolOutcome['outcome']) => void;
}

/** One call over HTTP. */
export interface McpHttpCall {
  readonly request: Request;
  readonly message: McpMessage;
  /** In lower case. */
  header(name: string): string | undefined;
  /** The answer is out, or nobody is there for it any more; called once. */
  onOver(run: () => void): void;
  /** Ends it under way, with its connection. */
  cut(): void;
}

const WINDOW_MS = 60_000;
/** Of an answer that nobody gets. */
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

  /** Throws MCP_SCOPE_MISSING, MCP_CALLS_OPEN and MCP_CALLS_THROTTLED. */
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

/** A tool that exists, but not for this token: told before any server is made, and so that the program can ask for more. */
const refuseOutsideScope = ({ scopes }: McpCaller, tool: ToolFacts | null): void => {
  if (tool === null || tool.scope === null || scopes.has(tool.scope)) return;
  throw new Fault('MCP_SCOPE_MISSING', { tool: tool.name, scope: tool.scope });
};

/** The SDK passes it on to the maker of servers, and does nothing else with it. */
const authInfoOf = (caller: McpCaller): AuthInfo => ({
  token: '',
  clientId: caller.access.kind,
  scopes: [...caller.scopes],
  extra: { caller },
});

/**
 * Revisions of 2025, without a session. The SDK's own way streams every answer; here only those who asked for progress get a stream,
 * as in the revision of 2026.
 */
const serveLegacy = async (server: McpServer, { request, message, onOver }: McpHttpCall): Promise<Response> => {
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: !asksForProgress(message),
    keepAliveMs: MCP_ALIVE_MS,
  });
  // Before anything can end it: a server that was closed first would serve all the same, for nobody.
  await server.connect(transport);
  let isOver = false;
  // One that is closed under way never answers.
  const gone = new Promise<Response>((resolve) => {
    onOver(() => {
      isOver = true;
      void server.close();
      resolve(new Response(null, { status: CALLER_GONE }));
    });
  });
  return isOver ? gone : Promise.race([transport.handleRequest(request, { parsedBody: message }), gone]);
};
