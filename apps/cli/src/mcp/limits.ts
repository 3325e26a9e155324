// Bounds shared by several files of this folder.

/**
 * tunnels that a model has open at once: what it forgets, it meets again soon
 * @limit mcp: `tunnel mcp`: open tunnels | `MCP_TUNNEL_LIMIT`
 */
export const MCP_TUNNELS_MAX = 10;
/** The part of that time for open visitor connections, and for an MCP client that reads answers slowly. */
export const MCP_DRAIN_MS = 1000;
