// Access tokens of people who log in: for the API of the platform, and for nothing else.
import type { Clock } from '@tunnel/runtime';
import { SignedTokens } from './signed-tokens.ts';
import type { SigningKeys } from './signing-keys.ts';

export const ACCESS_TOKEN_AUDIENCE = 'tunnel-platform';

/** Ours have some 400 characters. */
const TOKEN_MAX_CHARACTERS = 2048;

export interface AccessClaims {
  readonly userId: string;
  /** The user's, when it was signed. */
  readonly epoch: number;
}

export interface AccessTokensOptions {
  readonly keys: SigningKeys;
  readonly clock: Clock;
  /** [platform] public_url. */
  readonly issuer: string;
}

export class AccessTokens {
  readonly #signed: SignedTokens<AccessClaims>;

  constructor(options: AccessTokensOptions) {
    this.#signed = new SignedTokens({
      ...options,
      audience: ACCESS_TOKEN_AUDIENCE,
      typ: 'JWT',
      maxCharacters: TOKEN_MAX_CHARACTERS,
      read: ({ sub: userId, epoch }) => (typeof epoch === 'number' ? { userId, epoch } : null),
    });
  }

  issue({ id, epoch }: { readonly id: string; readonly epoch: number }): Promise<string> {
    return this.#signed.issue(id, { epoch });
  }

  /** The claims of a token, as far as they are known without the database: for counting its calls, not for letting them in. */
  known(token: string): AccessClaims | null {
    return this.#signed.known(token);
  }

  /** The same for a token that is seen for the first time. */
  checkInMemory(token: string): Promise<AccessClaims | null> {
    return this.#signed.checkInMemory(token);
  }

  /** The wait for the key of a token, where it is not known; null: there is none. */
  lookForKey(token: string): Promise<void> | null {
    return this.#signed.lookForKey(token);
  }

  /** null: not one of ours, or it has run out. Throws only when the keys cannot be read. */
  check(token: string): Promise<AccessClaims | null> {
    return this.#signed.check(token);
  }
}
