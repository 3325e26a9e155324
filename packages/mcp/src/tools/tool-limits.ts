// Bounds that several files of this package share, or other packages know. Every other bound stands beside its use.

export const MCP_TOOL_LIMITS = {
  /** tunnels in one answer: what the log of the platform gives */
  TOOL_TUNNELS_MAX: 100,
} as const;
