// Bounds shared by several files of this package, or with other packages.

export const MCP_TOOL_LIMITS = {
  /** tunnels in one answer: what the log of the platform gives */
  TOOL_TUNNELS_MAX: 100,
} as const;
