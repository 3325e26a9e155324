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
