// Reads one message to /mcp: parses its JSON, finds the called tool, and builds the error responses outside the protocol.
import { isUtf8 } from 'node:buffer';
import { PROTOCOL_VERSION_META_KEY } from '@modelcontextprotocol/server';
import { TOOLS, type ToolFacts, type ToolName } from '@tunnel/mcp/tools';

/** JSON-RPC error codes. */
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

export type McpMessage = Readonly<Record<string, unknown>>;

/** Parses a request body as one JSON-RPC message. Returns an error response for an invalid body. */
export const readMessage = (bytes: ArrayBuffer): McpMessage | Response => {
  // Checked on the bytes, because TextDecoder silently replaces invalid UTF-8.
  if (!isUtf8(bytes)) return rpcError(PARSE_ERROR, 'Parse error: the body is not valid UTF-8');
  try {
    const message: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (isRecord(message)) return message;
  } catch {
    return rpcError(PARSE_ERROR, 'Parse error: the body is not valid JSON');
  }
  // Batches were removed from the protocol in revision 2025-06-18, and would hide calls from limits and scopes.
  return rpcError(INVALID_REQUEST, 'Invalid Request: the body must be one JSON-RPC message');
};

const rpcError = (code: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status: 400 });

/** Returns the tool called by a message. Null if the message calls no tool, or an unknown tool. */
export const calledTool = ({ method, params }: McpMessage): ToolFacts | null => {
  if (method !== 'tools/call' || !isRecord(params)) return null;
  return TOOLS.get(params['name'] as ToolName) ?? null;
};

/** Returns true if the message asks for progress. Other messages get a plain JSON response. */
export const asksForProgress = (message: McpMessage): boolean => metaOf(message)?.['progressToken'] !== undefined;

/**
 * Returns true if the message states its protocol revision in `_meta`, as required since 2026. Such a message never belongs to an earlier
 * revision, even if it is otherwise invalid.
 */
export const saysRevision = (message: McpMessage): boolean =>
  metaOf(message)?.[PROTOCOL_VERSION_META_KEY] !== undefined;

const metaOf = ({ params }: McpMessage): McpMessage | undefined => {
  const meta = isRecord(params) ? params['_meta'] : undefined;
  return isRecord(meta) ? meta : undefined;
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
