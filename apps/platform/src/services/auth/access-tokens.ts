// Access tokens: signed for 15 minutes, checked by signature and claims.
import { hash } from 'node:crypto';
import { type Clock, randomId } from '@tunnel/runtime';
import { errors, jwtVerify, SignJWT } from 'jose';
import { LIMITS } from '../../limits.ts';
import { LruCache } from './lru-cache.ts';
import { SIGNING_ALGORITHM, type SigningKeys } from './signing-keys.ts';

export const ACCESS_TOKEN_AUDIENCE = 'tunnel-platform';

/** Ours have some 400 characters. */
const TOKEN_MAX_CHARACTERS = 2048;

export interface AccessClaims {
  readonly userId: string;
  /** The user's, when it was signed. */
  readonly epoch: number;
  /** In milliseconds since the epoch of the clock. */
  readonly expiresAt: number;
}

/** What was found of a token when its signature was checked. */
interface CheckedToken {
  readonly claims: AccessClaims;
  readonly kid: string;
}

export interface AccessTokensOptions {
  readonly keys: SigningKeys;
  readonly clock: Clock;
  /** [platform] public_url. */
  readonly issuer: string;
}

/** Whether the account behind a token is still in order is asked for elsewhere, at every request. */
export class AccessTokens {
  readonly #options: AccessTokensOptions;
  /** By the hash of the token: a signature takes a hundred times as long to check. */
  readonly #checked = new LruCache<CheckedToken>(LIMITS.VERIFIED_TOKENS_MAX);

  constructor(options: AccessTokensOptions) {
    this.#options = options;
  }

  async issue(user: { readonly id: string; readonly epoch: number }): Promise<string> {
    const { keys, clock, issuer } = this.#options;
    const { kid, privateKey } = await keys.current();
    const issuedAt = Math.floor(clock.now() / 1000);
    return new SignJWT({ epoch: user.epoch })
      .setProtectedHeader({ alg: SIGNING_ALGORITHM, typ: 'JWT', kid })
      .setIssuer(issuer)
      .setAudience(ACCESS_TOKEN_AUDIENCE)
      .setSubject(user.id)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + LIMITS.ACCESS_TOKEN_SECS)
      .setJti(randomId('jwt'))
      .sign(privateKey);
  }

  /** null: not one of ours, or it has run out. Throws only when the keys cannot be read. */
  async check(token: string): Promise<AccessClaims | null> {
    if (token.length > TOKEN_MAX_CHARACTERS) return null;
    const key = hash('sha256', token, 'base64');
    const known = this.#checked.get(key);
    if (known !== undefined) return (await this.#stillHolds(known)) ? known.claims : null;
    const checked = await this.#verify(token);
    if (checked !== null) this.#checked.set(key, checked);
    return checked?.claims ?? null;
  }

  /** A key that leaked is taken out of the database: whoever had it may have signed a token without an end. */
  async #stillHolds({ claims, kid }: CheckedToken): Promise<boolean> {
    const { keys, clock } = this.#options;
    return clock.now() < claims.expiresAt && (await keys.find(kid)) !== undefined;
  }

  async #verify(token: string): Promise<CheckedToken | null> {
    const { keys, clock, issuer } = this.#options;
    try {
      const { payload, protectedHeader } = await jwtVerify(
        token,
        async ({ kid = '' }) => {
          const key = await keys.find(kid);
          if (key === undefined) throw new errors.JWKSNoMatchingKey();
          return key.publicKey;
        },
        {
          algorithms: [SIGNING_ALGORITHM],
          issuer,
          audience: ACCESS_TOKEN_AUDIENCE,
          currentDate: new Date(clock.now()),
          requiredClaims: ['sub', 'iat', 'exp', 'jti', 'epoch'],
        },
      );
      const { sub, exp, epoch } = payload;
      if (sub === undefined || exp === undefined || typeof epoch !== 'number') return null;
      return { claims: { userId: sub, epoch, expiresAt: exp * 1000 }, kid: protectedHeader.kid ?? '' };
    } catch (error) {
      if (error instanceof errors.JOSEError) return null;
      throw error;
    }
  }
}
