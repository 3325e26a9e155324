// Limits shared by several files of the MCP folder.

/**
 * Maximum tunnels that a model can have open at once. Low, so that a model soon notices its forgotten tunnels.
 * @limit mcp: `tunnel mcp`: open tunnels | `MCP_TUNNEL_LIMIT`
 */
export const MCP_TUNNELS_MAX = 10;
/** Part of the server's shutdown time that is available to open visitor connections, and to an MCP client that reads responses slowly. */
export const MCP_DRAIN_MS = 1000;
