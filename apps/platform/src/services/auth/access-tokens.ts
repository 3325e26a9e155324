// Access tokens of signed-in users, accepted only by the platform's API.
import type { Clock } from '@tunnel/runtime';
import { SignedTokens } from './signed-tokens.ts';
import type { SigningKeys } from './signing-keys.ts';

export const ACCESS_TOKEN_AUDIENCE = 'tunnel-platform';

/** Maximum length of an access token. Issued tokens have about 400 characters. */
const TOKEN_MAX_CHARACTERS = 2048;

export interface AccessClaims {
  readonly userId: string;
  /** Epoch of the user when the token was signed. */
  readonly epoch: number;
}

export interface AccessTokensOptions {
  readonly keys: SigningKeys;
  readonly clock: Clock;
  /** Issuer of the tokens: the setting `[platform] public_url`. */
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

  /**
   * Returns the claims of a token that was checked before, without a database query. Only for counting calls, not for admitting requests.
   * Returns null if the token is not cached.
   */
  known(token: string): AccessClaims | null {
    return this.#signed.known(token);
  }

  /**
   * Checks a token with the signing keys in memory, without a database query. Only for counting calls, like `known`, but also for new
   * tokens.
   */
  checkInMemory(token: string): Promise<AccessClaims | null> {
    return this.#signed.checkInMemory(token);
  }

  /** Waits until the database was searched for the unknown key of a token. Returns null if no wait is necessary. */
  lookForKey(token: string): Promise<void> | null {
    return this.#signed.lookForKey(token);
  }

  /**
   * Returns the claims of a valid access token, or null if the token is invalid or has expired. Throws only if the signing keys cannot be
   * read.
   */
  check(token: string): Promise<AccessClaims | null> {
    return this.#signed.check(token);
  }
}
