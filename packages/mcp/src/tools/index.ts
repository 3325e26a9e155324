export type { ToolOutcome } from './call-tool.ts';
export { SCOPES, type Scope, TOOLS, type ToolFacts } from './tool-facts.ts';
export {
  type HostStatus,
  type HostUsage,
  type OpenedTunnel,
  type OpenTunnelInput,
  type RequestFilter,
  type RequestLine,
  type ShownTunnel,
  TOOL_NAMES,
  type ToolCall,
  type ToolHost,
  type ToolName,
} from './tool-host.ts';
export { createToolServer } from './tool-server.ts';
