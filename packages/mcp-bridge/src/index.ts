// A stdio MCP server as a web-standard handler: one child for all callers.
export {};
