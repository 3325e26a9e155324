// Limits shared by several files of this package or with other packages.

export const MCP_TOOL_LIMITS = {
  /** Maximum tunnels in one result, equal to the page size of the platform's log. */
  TOOL_TUNNELS_MAX: 100,
} as const;
