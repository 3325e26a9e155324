// About how much memory a policy takes, made ready: its texts, a value for each of them, and for each wildcard and each placeholder a piece of a test or
// of a template. Told from its JSON, so that it costs nobody a second look at the policy.

const OF_A_BYTE = 4;
const OF_A_VALUE = 128;
const OF_A_PIECE = 160;

const PIECES = /[*{]/g;
const VALUES = /[,[{]/g;

/** Rather more than it is: measured with policies that are all globs, all exceptions, all templates and all networks. */
export const policyWeight = (json: string): number =>
  json.length * OF_A_BYTE + countOf(json, VALUES) * OF_A_VALUE + countOf(json, PIECES) * OF_A_PIECE;

const countOf = (text: string, what: RegExp): number => text.match(what)?.length ?? 0;
