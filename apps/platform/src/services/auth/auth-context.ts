// What the verbs of accounts are given besides.
import type { ServiceContext } from '../shared/service-context.ts';
import type { AccessTokens } from './access-tokens.ts';
import type { PasswordHasher } from './password-hasher.ts';
import type { UserCache } from './users.ts';

export interface AuthContext extends ServiceContext {
  readonly passwords: PasswordHasher;
  readonly accessTokens: AccessTokens;
  readonly users: UserCache;
  /** A mail waits; called after the transaction. */
  readonly wakeMailer: () => void;
  /** The invitation for the first account was used; called after the transaction. */
  readonly firstAccountMade: () => void;
}

/** Where a request came from. */
export interface Caller {
  readonly address: string;
  readonly userAgent: string;
}
