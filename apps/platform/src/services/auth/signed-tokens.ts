// Signed tokens of one audience: made with the key that signs now, checked by signature and claims, and known for as long as they hold.
import { hash } from 'node:crypto';
import { Cache, type Clock, randomId } from '@tunnel/runtime';
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { LIMITS } from '../../limits.ts';
import { SIGNING_ALGORITHM, type SigningKeys } from './signing-keys.ts';

/** Access tokens that were checked and are known until they run out; and users, for so long. */
const VERIFIED_TOKENS_MAX = 20_000;

/** What was found of a token when its signature was checked. */
interface CheckedToken<Claims> {
  readonly claims: Claims;
  readonly kid: string;
  /** In milliseconds since the epoch of the clock. */
  readonly expiresAt: number;
}

export interface SignedTokensOptions<Claims> {
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly issuer: string;
  /** Whom they are for. It is what keeps a token of one kind from passing for one of another. */
  readonly audience: string;
  readonly typ: 'JWT' | 'at+jwt';
  /** Ours are far shorter: a longer one is not even hashed. */
  readonly maxCharacters: number;
  /** null: a claim is missing, or of another type. */
  readonly read: (payload: JWTPayload & { readonly sub: string }) => Claims | null;
}

type FindKey = (kid: string) => ReturnType<SigningKeys['find']> | ReturnType<SigningKeys['inMemory']>;

const keyOf = (token: string): string => hash('sha256', token, 'base64');

/** The name of the key that a token says it is signed with; null: it says none. */
const kidIn = (token: string): string | null => {
  try {
    return kidOf(decodeProtectedHeader(token));
  } catch {
    return null;
  }
};

const kidOf = ({ kid }: { readonly kid?: unknown }): string | null =>
  typeof kid === 'string' && kid !== '' ? kid : null;

/** Whether the account behind a token is still in order is asked for elsewhere, at every request. */
export class SignedTokens<Claims> {
  readonly #options: SignedTokensOptions<Claims>;
  /** By the hash of the token: a signature takes a hundred times as long to check. */
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
    // Our own needs no check: its first call counts for its account at once.
    const read = this.#options.read({ ...claims, sub: userId });
    if (read !== null) this.#checked.set(keyOf(token), { claims: read, kid, expiresAt: expiresAt * 1000 });
    return token;
  }

  /** The claims of a token that was checked before and has not expired. The key that signed it may have been withdrawn since: good for counting, not for letting in. */
  known(token: string): Claims | null {
    if (token.length > this.#options.maxCharacters) return null;
    const known = this.#checked.get(keyOf(token));
    return known !== undefined && this.#options.clock.now() < known.expiresAt ? known.claims : null;
  }

  /** The same for a token that has not been checked yet, by the signing keys in memory: the database is not asked. */
  async checkInMemory(token: string): Promise<Claims | null> {
    if (token.length > this.#options.maxCharacters) return null;
    const checked = await this.#verify(token, (kid) => this.#options.keys.inMemory(kid));
    if (checked !== null) this.#checked.set(keyOf(token), checked);
    return checked?.claims ?? null;
  }

  /**
   * A token of a key that is not known waits for the next look at the database for new keys, which is once a second. This is that wait alone: after it,
   * `check` need not wait. null: there is nothing to wait for.
   */
  lookForKey(token: string): Promise<void> | null {
    const { keys, maxCharacters } = this.#options;
    const kid = token.length > maxCharacters ? null : kidIn(token);
    if (kid === null || !keys.isUnknown(kid)) return null;
    const looked = (): void => {};
    // Whoever checks the token hears of keys that cannot be read.
    return keys.find(kid).then(looked, looked);
  }

  /** null: not one of these, or it has run out. Throws only when the keys cannot be read. */
  async check(token: string): Promise<Claims | null> {
    if (token.length > this.#options.maxCharacters) return null;
    const key = keyOf(token);
    const known = this.#checked.get(key);
    if (known !== undefined) return (await this.#stillHolds(known)) ? known.claims : null;
    const checked = await this.#verify(token, (kid) => this.#options.keys.find(kid));
    if (checked !== null) this.#checked.set(key, checked);
    return checked?.claims ?? null;
  }

  /** A key that leaked is taken out of the database: whoever had it may have signed a token without an end. */
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
