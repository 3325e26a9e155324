// Estimates the memory of a compiled policy: its strings, a value for each, and a matcher or template part for each wildcard and
// placeholder. Computed from the JSON text, so that the policy is not traversed again.

const OF_A_BYTE = 4;
const OF_A_VALUE = 128;
const OF_A_PIECE = 160;

const PIECES = /[*{]/g;
const VALUES = /[,[{]/g;

/** Returns the estimated memory in bytes. Deliberately high: measured with policies full of globs, exceptions, templates or networks. */
export const policyWeight = (json: string): number =>
  json.length * OF_A_BYTE + countOf(json, VALUES) * OF_A_VALUE + countOf(json, PIECES) * OF_A_PIECE;

const countOf = (text: string, what: RegExp): number => text.match(what)?.length ?? 0;
