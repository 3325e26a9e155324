// One message to /mcp before anybody acts on it: its JSON, the tool it calls, and what answers that are none of the protocol's look like.
import { isUtf8 } from 'node:buffer';
import { PROTOCOL_VERSION_META_KEY } from '@modelcontextprotocol/server';
import { TOOLS, type ToolFacts, type ToolName } from '@tunnel/mcp/tools';

/** Of JSON-RPC. */
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

export type McpMessage = Readonly<Record<string, unknown>>;

/** The message, or the answer to what is none. */
export const readMessage = (bytes: ArrayBuffer): McpMessage | Response => {
  // A text does not tell that what it was made of was none.
  if (!isUtf8(bytes)) return rpcError(PARSE_ERROR, 'Parse error: the body is not valid UTF-8');
  try {
    const message: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (isRecord(message)) return message;
  } catch {
    return rpcError(PARSE_ERROR, 'Parse error: the body is not valid JSON');
  }
  // Batches went with revision 2025-06-18, and would hide calls from limits and scopes.
  return rpcError(INVALID_REQUEST, 'Invalid Request: the body must be one JSON-RPC message');
};

const rpcError = (code: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status: 400 });

/** null: it calls none, or none that there is. */
export const calledTool = ({ method, params }: McpMessage): ToolFacts | null => {
  if (method !== 'tools/call' || !isRecord(params)) return null;
  return TOOLS.get(params['name'] as ToolName) ?? null;
};

/** Whoever does not ask for progress is answered with plain JSON. */
export const asksForProgress = (message: McpMessage): boolean => metaOf(message)?.['progressToken'] !== undefined;

/** As every request does since 2026: it is none of an earlier revision, whatever else is wrong with it. */
export const saysRevision = (message: McpMessage): boolean =>
  metaOf(message)?.[PROTOCOL_VERSION_META_KEY] !== undefined;

const metaOf = ({ params }: McpMessage): McpMessage | undefined => {
  const meta = isRecord(params) ? params['_meta'] : undefined;
  return isRecord(meta) ? meta : undefined;
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
