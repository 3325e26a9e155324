// Bounds shared by several files of this folder.

/**
 * tunnels that a model has open at once: what it forgets, it meets again soon
 * @limit mcp: `tunnel mcp`: tunnels that a model has open | `MCP_TUNNEL_LIMIT`
 */
export const MCP_TUNNELS_MAX = 10;
/** of that: for visitors who are being served, and for whoever reads our answers slowly */
export const MCP_DRAIN_MS = 1000;
