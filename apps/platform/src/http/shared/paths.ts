// Paths used in several files, of routes outside the documented API.

export const MCP_PATH = '/mcp';

/** Path prefix of the responses to http-01 challenges (RFC 8555, 8.3). */
export const CHALLENGE_PATH = '/.well-known/acme-challenge/';
