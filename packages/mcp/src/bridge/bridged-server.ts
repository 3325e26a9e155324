// The server that callers see: what the one behind says of itself, with its tools as far as they are allowed. A fresh one answers each request;
// nothing is kept between them.
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

/** progress that one call may report; what comes then is left out, since a caller that does not read it lets it pile up */
const PROGRESS_MAX_BYTES = 1024 * 1024;

const INVALID_PARAMS = -32602;
export const SESSION_HEADER = 'mcp-session-id';

export interface BridgedServerOptions {
  readonly keeper: Pick<ServerKeeper, 'facts' | 'request'>;
  readonly calls: OpenCalls;
  /** null: all. */
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
  // Below its tables of tools and prompts: those are somebody else's here.
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

/** What needs one caller for itself is left out: subscriptions to a resource, levels of logging, tasks. Lists may change with every restart. */
const passedCapabilities = ({ capabilities }: ServerFacts): ServerCapabilities => ({
  ...(capabilities.tools === undefined ? {} : { tools: { listChanged: true } }),
  ...(capabilities.resources === undefined ? {} : { resources: { listChanged: true } }),
  ...(capabilities.prompts === undefined ? {} : { prompts: { listChanged: true } }),
  ...(capabilities.completions === undefined ? {} : { completions: {} }),
});

export const allowedTools = ({ tools }: ServerFacts, allowTools: ReadonlySet<string> | null): Tool[] =>
  tools.filter(({ name }) => allowTools === null || allowTools.has(name)) as Tool[];

/** Nobody learns that there is such a tool. */
const checkTool = ({ params: { name } }: CallToolRequest, allowTools: ReadonlySet<string> | null): void => {
  if (allowTools !== null && !allowTools.has(name)) throw new ProtocolError(INVALID_PARAMS, `Tool ${name} not found`);
};

/** Ids are the SDK's on both sides; a progress token of a caller stays here, and the server gets one of ours. */
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
    // Who has left hears of no progress.
    notify({ method: 'notifications/progress', params: message }).catch(() => {});
  };
  return calls.run(session, id, (cancelled) =>
    keeper.request(method, passed, {
      signal: AbortSignal.any([gone, cancelled]),
      onProgress: progressToken === undefined ? null : onProgress,
    }),
  );
};
