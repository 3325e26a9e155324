// The MCP server seen by callers: the identity and the allowed tools of the stdio server behind the bridge. Each request gets a new
// instance, so no state is kept between requests.
import {
  type CallToolRequest,
  type McpRequestContext,
  McpServer,
  ProtocolError,
  type Result,
  type ServerCapabilities,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server';
import type { OpenCalls } from './open-calls.ts';
import type { ForwardedMethod, ServerFacts, ServerKeeper } from './server-keeper.ts';

/**
 * Maximum progress reports of one call, in bytes. Further reports are dropped, because they pile up in memory if the caller does not read
 * them.
 */
const PROGRESS_MAX_BYTES = 1024 * 1024;

const INVALID_PARAMS = -32602;
export const SESSION_HEADER = 'mcp-session-id';

export interface BridgedServerOptions {
  readonly keeper: Pick<ServerKeeper, 'facts' | 'request'>;
  readonly calls: OpenCalls;
  /** Names of the allowed tools. Null allows all tools. */
  readonly allowTools: ReadonlySet<string> | null;
}

interface ForwardedRequest {
  readonly params?:
    | { readonly [key: string]: unknown; readonly _meta?: Record<string, unknown> | undefined }
    | undefined;
}

export const makeBridgedServer = (deps: BridgedServerOptions, { era, requestInfo }: McpRequestContext): McpServer => {
  const { keeper, allowTools } = deps;
  const { info, instructions, capabilities: offered } = keeper.facts;
  const capabilities = passedCapabilities(keeper.facts);
  const bridged = new McpServer(info, { capabilities, ...(instructions === undefined ? {} : { instructions }) });
  // Uses the low-level server of the SDK, because the tools and prompts are defined by the stdio server, not by McpServer's registry.
  const { server } = bridged;
  const session = era === 'legacy' ? (requestInfo?.headers.get(SESSION_HEADER) ?? null) : null;
  const forward = (method: ForwardedMethod) => (request: ForwardedRequest, context: ServerContext) =>
    forwardRequest(deps, method, { session, request, context });

  if (offered.tools !== undefined) {
    server.setRequestHandler('tools/list', () => ({ tools: allowedTools(keeper.facts, allowTools) }));
    server.setRequestHandler('tools/call', async (request, context) => {
      checkTool(request, allowTools);
      const result = await forward('tools/call')(request, context);
      const tool = keeper.facts.tools.find(({ name }) => name === request.params.name);
      return server.projectCallToolResult(result as never, tool?.outputSchema);
    });
  }
  if (offered.resources !== undefined) {
    server.setRequestHandler('resources/list', forward('resources/list') as never);
    server.setRequestHandler('resources/templates/list', forward('resources/templates/list') as never);
    server.setRequestHandler('resources/read', forward('resources/read') as never);
  }
  if (offered.prompts !== undefined) {
    server.setRequestHandler('prompts/list', forward('prompts/list') as never);
    server.setRequestHandler('prompts/get', forward('prompts/get') as never);
  }
  if (offered.completions !== undefined) {
    server.setRequestHandler('completion/complete', forward('completion/complete') as never);
  }
  return bridged;
};

/**
 * Returns the server's capabilities without features that need a dedicated caller: resource subscriptions, log levels and tasks. Lists
 * are declared as changeable, because every restart of the server can change them.
 */
const passedCapabilities = ({ capabilities }: ServerFacts): ServerCapabilities => ({
  ...(capabilities.tools === undefined ? {} : { tools: { listChanged: true } }),
  ...(capabilities.resources === undefined ? {} : { resources: { listChanged: true } }),
  ...(capabilities.prompts === undefined ? {} : { prompts: { listChanged: true } }),
  ...(capabilities.completions === undefined ? {} : { completions: {} }),
});

export const allowedTools = ({ tools }: ServerFacts, allowTools: ReadonlySet<string> | null): Tool[] =>
  tools.filter(({ name }) => allowTools === null || allowTools.has(name)) as Tool[];

/** Rejects calls to tools outside the allowlist with the error of an unknown tool, so that callers cannot detect hidden tools. */
const checkTool = ({ params: { name } }: CallToolRequest, allowTools: ReadonlySet<string> | null): void => {
  if (allowTools !== null && !allowTools.has(name)) throw new ProtocolError(INVALID_PARAMS, `Tool ${name} not found`);
};

/**
 * Forwards a request to the stdio server. The SDK assigns request ids on both sides. The caller's progress token is replaced by a token
 * of the SDK.
 */
const forwardRequest = (
  { keeper, calls }: BridgedServerOptions,
  method: ForwardedMethod,
  { session, request, context }: { session: string | null; request: ForwardedRequest; context: ServerContext },
): Promise<Result> => {
  const { _meta: { progressToken, ...meta } = {}, ...params } = request.params ?? {};
  const passed = { ...params, ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }) };
  const { id, notify, signal: gone } = context.mcpReq;
  let progressBytes = 0;
  const onProgress = (progress: object): void => {
    const message = { ...progress, progressToken };
    progressBytes += JSON.stringify(message).length;
    if (progressBytes > PROGRESS_MAX_BYTES) return;
    // The notification fails if the caller has disconnected. The error is ignored, because the caller no longer needs progress reports.
    notify({ method: 'notifications/progress', params: message }).catch(() => {});
  };
  return calls.run(session, id, (cancelled) =>
    keeper.request(method, passed, {
      signal: AbortSignal.any([gone, cancelled]),
      onProgress: progressToken === undefined ? null : onProgress,
    }),
  );
};
