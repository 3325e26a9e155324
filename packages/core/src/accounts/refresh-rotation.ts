// What becomes of a refresh token that somebody shows. Each use gives a successor; a token that was already replaced is either
// a second tab or a lost answer, a moment later, or a copy in other hands.

interface RefreshRules {
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
