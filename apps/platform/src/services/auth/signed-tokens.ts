// Signed tokens for a single audience: signed with the current key, verified by signature and claims, and cached while valid.
import { hash } from 'node:crypto';
import { Cache, type Clock, randomId } from '@tunnel/runtime';
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { LIMITS } from '../../limits.ts';
import { SIGNING_ALGORITHM, type SigningKeys } from './signing-keys.ts';

/** Maximum number of verified tokens in the cache. */
const VERIFIED_TOKENS_MAX = 20_000;

/** Result of the verification of a token. */
interface CheckedToken<Claims> {
  readonly claims: Claims;
  readonly kid: string;
  /** Expiry of the token, in milliseconds on the scale of clock.now(). */
  readonly expiresAt: number;
}

export interface SignedTokensOptions<Claims> {
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly issuer: string;
  /** Audience of the tokens. The audience prevents the use of a token of one kind as a token of another kind. */
  readonly audience: string;
  readonly typ: 'JWT' | 'at+jwt';
  /** Maximum length of a token. Issued tokens are far shorter; a longer token is rejected without hashing. */
  readonly maxCharacters: number;
  /** Reads the claims of a token. Returns null if a claim is missing or has the wrong type. */
  readonly read: (payload: JWTPayload & { readonly sub: string }) => Claims | null;
}

type FindKey = (kid: string) => ReturnType<SigningKeys['find']> | ReturnType<SigningKeys['inMemory']>;

const keyOf = (token: string): string => hash('sha256', token, 'base64');

/** Returns the key id in the header of a token, or null if the header has no key id. The header is not verified. */
const kidIn = (token: string): string | null => {
  try {
    return kidOf(decodeProtectedHeader(token));
  } catch {
    return null;
  }
};

const kidOf = ({ kid }: { readonly kid?: unknown }): string | null =>
  typeof kid === 'string' && kid !== '' ? kid : null;

/** Issues and verifies signed tokens. Whether the token's account is still active must be checked elsewhere, at every request. */
export class SignedTokens<Claims> {
  readonly #options: SignedTokensOptions<Claims>;
  /** Verified tokens by the hash of the token. Verifying a signature takes a hundred times as long as hashing. */
  readonly #checked = new Cache<string, CheckedToken<Claims>>({ max: VERIFIED_TOKENS_MAX });

  constructor(options: SignedTokensOptions<Claims>) {
    this.#options = options;
  }

  async issue(userId: string, claims: JWTPayload): Promise<string> {
    const { keys, clock, issuer, audience, typ } = this.#options;
    const { kid, privateKey } = await keys.current();
    const issuedAt = Math.floor(clock.now() / 1000);
    const expiresAt = issuedAt + LIMITS.ACCESS_TOKEN_SECS;
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: SIGNING_ALGORITHM, typ, kid })
      .setIssuer(issuer)
      .setAudience(audience)
      .setSubject(userId)
      .setIssuedAt(issuedAt)
      .setExpirationTime(expiresAt)
      .setJti(randomId('jwt'))
      .sign(privateKey);
    // An issued token is cached as verified, so that its first call counts for its account immediately.
    const read = this.#options.read({ ...claims, sub: userId });
    if (read !== null) this.#checked.set(keyOf(token), { claims: read, kid, expiresAt: expiresAt * 1000 });
    return token;
  }

  /**
   * Returns the claims of a token that was verified before and has not expired. The key that signed the token may have been withdrawn
   * since, so the result is only for counting, not for admitting requests.
   */
  known(token: string): Claims | null {
    if (token.length > this.#options.maxCharacters) return null;
    const known = this.#checked.get(keyOf(token));
    return known !== undefined && this.#options.clock.now() < known.expiresAt ? known.claims : null;
  }

  /** Verifies a new token with the signing keys in memory, without a database query. Only for counting, like `known`. */
  async checkInMemory(token: string): Promise<Claims | null> {
    if (token.length > this.#options.maxCharacters) return null;
    const checked = await this.#verify(token, (kid) => this.#options.keys.inMemory(kid));
    if (checked !== null) this.#checked.set(keyOf(token), checked);
    return checked?.claims ?? null;
  }

  /**
   * Waits for the next search of the database for the unknown key of a token, at most once per second. After the wait, `check` does not
   * have to wait. Returns null if no wait is necessary.
   */
  lookForKey(token: string): Promise<void> | null {
    const { keys, maxCharacters } = this.#options;
    const kid = token.length > maxCharacters ? null : kidIn(token);
    if (kid === null || !keys.isUnknown(kid)) return null;
    const looked = (): void => {};
    // Errors are ignored here; `check` reports keys that cannot be read.
    return keys.find(kid).then(looked, looked);
  }

  /** Verifies a token. Returns null if the token is invalid or has expired. Throws only if the signing keys cannot be read. */
  async check(token: string): Promise<Claims | null> {
    if (token.length > this.#options.maxCharacters) return null;
    const key = keyOf(token);
    const known = this.#checked.get(key);
    if (known !== undefined) return (await this.#stillHolds(known)) ? known.claims : null;
    const checked = await this.#verify(token, (kid) => this.#options.keys.find(kid));
    if (checked !== null) this.#checked.set(key, checked);
    return checked?.claims ?? null;
  }

  /**
   * Returns true if a cached token is still valid. The key is looked up again, because a leaked key is removed from the database; an
   * attacker with the key could have signed a token that never expires.
   */
  async #stillHolds({ expiresAt, kid }: CheckedToken<Claims>): Promise<boolean> {
    const { keys, clock } = this.#options;
    return clock.now() < expiresAt && (await keys.find(kid)) !== undefined;
  }

  async #verify(token: string, find: FindKey): Promise<CheckedToken<Claims> | null> {
    const { clock, issuer, audience, read } = this.#options;
    try {
      const { payload, protectedHeader } = await jwtVerify(
        token,
        async (header) => {
          const kid = kidOf(header);
          const key = kid === null ? undefined : await find(kid);
          if (key === undefined) throw new errors.JWKSNoMatchingKey();
          return key.publicKey;
        },
        {
          algorithms: [SIGNING_ALGORITHM],
          issuer,
          audience,
          currentDate: new Date(clock.now()),
          requiredClaims: ['sub', 'iat', 'exp', 'jti'],
        },
      );
      const { sub, exp } = payload;
      const claims = sub === undefined ? null : read({ ...payload, sub });
      if (claims === null || exp === undefined) return null;
      return { claims, kid: protectedHeader.kid ?? '', expiresAt: exp * 1000 };
    } catch (error) {
      if (error instanceof errors.JOSEError) return null;
      throw error;
    }
  }
}
