import { RULE_LIMITS } from '../limits.ts';
import { isLabel } from '../names/label.ts';

/** the part of an address before the @ (RFC 5321) */
const EMAIL_LOCAL_PART_MAX_CHARS = 64;
/**
 * length is what makes a password hard to guess, and the only thing that is asked for
 * @limit accounts: Password, minimum length | 400 `API_BAD_REQUEST`
 */
const PASSWORD_MIN_CHARS = 8;

// Signing in: what an address and a password must be, who is let in, and what becomes of a refresh token.

// E-mail addresses: how one is compared, and what passes for one.

/** What may stand before the @ without quotes. Quoted forms are refused: nobody has one, and headers are made of these. */
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;

/** Trimmed and in lower case: one address is one account. Of ASCII alone: toLowerCase() makes a k of the Kelvin sign too. */
export const normalizeAddress = (text: string): string =>
  text.trim().replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** Of a normalized one. ASCII only: letters that merely look alike would be accounts that merely look alike. */
export const isAddress = (address: string): boolean => {
  if (address.length > RULE_LIMITS.EMAIL_MAX_CHARS) return false;
  const at = address.lastIndexOf('@');
  if (at < 1 || at > EMAIL_LOCAL_PART_MAX_CHARS) return false;
  const labels = address.slice(at + 1).split('.');
  return LOCAL.test(address.slice(0, at)) && labels.every(isLabel);
};

// What a password must be. No kinds of characters are asked for: length is what makes one hard to guess.

const { PASSWORD_MAX_BYTES: MAX_BYTES } = RULE_LIMITS;
const MIN_CHARS = PASSWORD_MIN_CHARS;

/** null: it will do. Nothing is trimmed or folded: what was typed is the password. */
export const problemOfPassword = (password: string): string | null => {
  let characters = 0;
  let bytes = 0;
  // By code points, as people count, and by what they take in UTF-8.
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

/** A hash that was made with less than what is wanted today. One that was made with more stays. */
export const isHashTooCheap = (made: HashCost, wanted: HashCost): boolean =>
  made.memoryKib < wanted.memoryKib || made.passes < wanted.passes || made.lanes < wanted.lanes;

// Who is let in with a password, and what the others are told. Only somebody who knew the password learns the state of an
// account; everybody else hears the same as for an address that nobody has.

export interface LoginFacts {
  /** An external sign-in made the account: it has no password. */
  readonly external: boolean;
  readonly passwordMatches: boolean;
  readonly status: 'active' | 'suspended';
  readonly emailVerified: boolean;
}

export type LoginVerdict = 'welcome' | 'wrong' | 'external' | 'suspended' | 'unverified';

/** null: nobody has the address. */
export const judgeLogin = (facts: LoginFacts | null): LoginVerdict => {
  if (facts === null) return 'wrong';
  if (facts.external) return 'external';
  if (!facts.passwordMatches) return 'wrong';
  if (facts.status === 'suspended') return 'suspended';
  return facts.emailVerified ? 'welcome' : 'unverified';
};

// What becomes of a refresh token that somebody shows. Each use gives a successor; a token that was already replaced is either
// a second tab or a lost answer, a moment later, or a copy in other hands.

export interface RefreshRules {
  /** For so long after its first use a token still gives successors … */
  readonly graceMs: number;
  /** … at most so many. */
  readonly graceUses: number;
}

export interface ShownToken {
  readonly expiresAt: number;
  /** When its first successor was given out; null: it is unused. */
  readonly rotatedAt: number | null;
  /** Successors after the first. */
  readonly graceUses: number;
  /** Logged out, ended by a reset, or found in two hands. */
  readonly familyRevoked: boolean;
  readonly userStatus: 'active' | 'suspended';
}

export type RefreshDecision =
  /** The first use: from now on its grace runs. */
  | 'rotate'
  /** One more successor; counted. */
  | 'rotate-again'
  /** A copy is about: the whole family ends. */
  | 'reuse'
  | 'suspended'
  /** Unknown, run out, or of a family that has ended. */
  | 'invalid';

export const decideRefresh = (token: ShownToken | null, now: number, rules: RefreshRules): RefreshDecision => {
  if (token === null || now >= token.expiresAt) return 'invalid';
  // Before the family: suspending an account ends its families, and its owner should learn why.
  if (token.userStatus === 'suspended') return 'suspended';
  if (token.familyRevoked) return 'invalid';
  if (token.rotatedAt === null) return 'rotate';
  const inGrace = now - token.rotatedAt <= rules.graceMs && token.graceUses < rules.graceUses;
  return inGrace ? 'rotate-again' : 'reuse';
};
