// Dependencies of the account services (sign-up, sign-in, sessions, passwords).
import type { ServiceContext } from '../shared/service-context.ts';
import type { AccessTokens } from './access-tokens.ts';
import type { PasswordHasher } from './password-hasher.ts';
import type { UserCache } from './users.ts';

export interface AuthContext extends ServiceContext {
  readonly passwords: PasswordHasher;
  readonly accessTokens: AccessTokens;
  readonly users: UserCache;
  /** Notifies the mailer of a queued mail; called after the transaction. */
  readonly wakeMailer: () => void;
  /** Called after the transaction in which the invitation for the first account was used. */
  readonly firstAccountMade: () => void;
}

/** Origin of a request: network address and user agent. */
export interface Caller {
  readonly address: string;
  readonly userAgent: string;
}
