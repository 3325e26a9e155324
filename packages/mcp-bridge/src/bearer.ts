// The bearer token of a published MCP server: how one is made, and how one that is shown is judged. Only its hash is kept.
import { randomBytes } from 'node:crypto';
import { equalInConstantTime, sha256Hex } from '@tunnel/runtime';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const CHARACTERS = 32;
/** The largest multiple of 62 below 256: bytes from here on would favour the first letters. */
const UNBIASED_BELOW = 248;

/** `mcp_` and 32 base62 characters: 190 bits. */
export const makeBearer = (): string => {
  let text = '';
  while (text.length < CHARACTERS) {
    for (const byte of randomBytes(CHARACTERS)) {
      if (byte < UNBIASED_BELOW && text.length < CHARACTERS) text += BASE62.charAt(byte % BASE62.length);
    }
  }
  return `mcp_${text}`;
};

/** What is kept of it. */
export const bearerHash = (token: string): string => sha256Hex(token);

/** As RFC 6750 has them; a shorter one could be guessed. */
const TOKEN = /^[A-Za-z0-9\-._~+/]{16,1024}=*$/;

/** null: it can be used. */
export const bearerProblem = (token: string): string | null =>
  TOKEN.test(token) ? null : 'a bearer token has 16 to 1024 letters, digits or -._~+/';

/** null: let in. Else the value of WWW-Authenticate. */
export const bearerChallenge = (authorization: string | null, hash: string | null): string | null => {
  if (hash === null) return null;
  const shown = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  if (shown === undefined) return 'Bearer';
  return equalInConstantTime(bearerHash(shown), hash) ? null : 'Bearer error="invalid_token"';
};
