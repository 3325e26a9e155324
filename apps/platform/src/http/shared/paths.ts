// Paths that several parts know: of routes outside of the API that is described.

export const MCP_PATH = '/mcp';

/** Answers to http-01 are below it (RFC 8555, 8.3). */
export const CHALLENGE_PATH = '/.well-known/acme-challenge/';
