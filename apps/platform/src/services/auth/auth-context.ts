// What the verbs of accounts are given besides.
import type { ServiceContext } from '../service-context.ts';
import type { AccessTokens } from './access-tokens.ts';
import type { PasswordHasher } from './password-hasher.ts';
import type { KnownUsers } from './users.ts';

export interface AuthContext extends ServiceContext {
  readonly passwords: PasswordHasher;
  readonly accessTokens: AccessTokens;
  readonly users: KnownUsers;
  /** A mail waits; called after the transaction. */
  readonly mailWaits: () => void;
}

/** Where a request came from. */
export interface Caller {
  readonly address: string;
  readonly userAgent: string;
}
