import { RULE_LIMITS } from '../limits.ts';
import { isLabel } from '../names/label.ts';

/** Maximum length of the part of an e-mail address before the @ (RFC 5321). */
const EMAIL_LOCAL_PART_MAX_CHARS = 64;
/**
 * Minimum length of a password, the only requirement: length makes a password hard to guess.
 * @limit accounts: Password, minimum length | 400 `API_BAD_REQUEST`
 */
const PASSWORD_MIN_CHARS = 8;

// Sign-in rules: valid addresses and passwords, who is let in, and the rotation of refresh tokens.

// E-mail addresses: normalization and validation.

/** Unquoted local parts only. Quoted forms are rejected, because they are not in use and addresses are written into mail headers. */
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;

/** Trims and lowers ASCII letters, so that an address has one account. toLowerCase() would also turn the Kelvin sign into k. */
export const normalizeAddress = (text: string): string =>
  text.trim().replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** Checks a normalized address. ASCII only, because look-alike letters would allow look-alike accounts. */
export const isAddress = (address: string): boolean => {
  if (address.length > RULE_LIMITS.EMAIL_MAX_CHARS) return false;
  const at = address.lastIndexOf('@');
  if (at < 1 || at > EMAIL_LOCAL_PART_MAX_CHARS) return false;
  const labels = address.slice(at + 1).split('.');
  return LOCAL.test(address.slice(0, at)) && labels.every(isLabel);
};

// Password rules. No character classes are required, because length makes a password hard to guess.

const { PASSWORD_MAX_BYTES: MAX_BYTES } = RULE_LIMITS;
const MIN_CHARS = PASSWORD_MIN_CHARS;

/** Returns an error message, or null if valid. Passwords are used exactly as typed, without trimming or folding. */
export const problemOfPassword = (password: string): string | null => {
  let characters = 0;
  let bytes = 0;
  // Counts a password's code points, as people do, and its bytes of UTF-8.
  for (const character of password) {
    characters += 1;
    bytes += utf8Bytes(character.codePointAt(0) ?? 0);
    if (bytes > MAX_BYTES) return `must have at most ${MAX_BYTES} bytes`;
  }
  return characters < MIN_CHARS ? `must have at least ${MIN_CHARS} characters` : null;
};

const utf8Bytes = (codePoint: number): number => {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x1_0000 ? 3 : 4;
};

export interface HashCost {
  readonly memoryKib: number;
  readonly passes: number;
  readonly lanes: number;
}

/** Returns true if a hash was made with less than the wanted cost. A more expensive hash stays. */
export const isHashTooCheap = (made: HashCost, wanted: HashCost): boolean =>
  made.memoryKib < wanted.memoryKib || made.passes < wanted.passes || made.lanes < wanted.lanes;

// Sign-in with a password. Only a person who knows the password learns the state of the account; the response is otherwise the same as for
// an unknown address.

export interface LoginFacts {
  /** True if an external sign-in created the account, so it has no password. */
  readonly external: boolean;
  readonly passwordMatches: boolean;
  readonly status: 'active' | 'suspended';
  readonly emailVerified: boolean;
}

export type LoginVerdict = 'welcome' | 'wrong' | 'external' | 'suspended' | 'unverified';

/** Decides whether a password sign-in succeeds. `facts` is null for an unknown address. */
export const judgeLogin = (facts: LoginFacts | null): LoginVerdict => {
  if (facts === null) return 'wrong';
  if (facts.external) return 'external';
  if (!facts.passwordMatches) return 'wrong';
  if (facts.status === 'suspended') return 'suspended';
  return facts.emailVerified ? 'welcome' : 'unverified';
};

// Rotation of refresh tokens. Every use returns a successor. A token used twice is either a second browser tab or a lost response, shortly
// afterwards, or a stolen copy.

export interface RefreshRules {
  /** Time after a refresh token's first use in which it still returns successors. */
  readonly graceMs: number;
  /** Maximum number of additional successors that a used refresh token returns within the grace time. */
  readonly graceUses: number;
}

export interface ShownToken {
  readonly expiresAt: number;
  /** Time of the refresh token's first use. Null if unused. */
  readonly rotatedAt: number | null;
  /** Number of successors of the refresh token issued after the first. */
  readonly graceUses: number;
  /** True if all refresh tokens of this sign-in were revoked: by sign-out, a password reset, or detected reuse. */
  readonly familyRevoked: boolean;
  readonly userStatus: 'active' | 'suspended';
}

export type RefreshDecision =
  /** First use of the refresh token: issue a successor; the grace time starts. */
  | 'rotate'
  /** Repeated use of the refresh token within the grace time: issue another successor. */
  | 'rotate-again'
  /** A copy of the token is in use: the whole family is revoked. */
  | 'reuse'
  | 'suspended'
  /** The refresh token is unknown or expired, or its family was revoked. */
  | 'invalid';

export const decideRefresh = (token: ShownToken | null, now: number, rules: RefreshRules): RefreshDecision => {
  if (token === null || now >= token.expiresAt) return 'invalid';
  // The account's suspension is checked before the token family, because suspending an account revokes its families, and the owner should
  // learn the reason.
  if (token.userStatus === 'suspended') return 'suspended';
  if (token.familyRevoked) return 'invalid';
  if (token.rotatedAt === null) return 'rotate';
  const inGrace = now - token.rotatedAt <= rules.graceMs && token.graceUses < rules.graceUses;
  return inGrace ? 'rotate-again' : 'reuse';
};
