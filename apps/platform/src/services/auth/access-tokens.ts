// Access tokens: signed for 15 minutes, checked by signature and claims; and the keys that they are signed with.
import { hash } from 'node:crypto';
import type { PublicKeys } from '@tunnel/contract';
import { type Clock, randomId } from '@tunnel/runtime';
import { type CryptoKey, errors, exportJWK, generateKeyPair, importJWK, type JWK, jwtVerify, SignJWT } from 'jose';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { LIMITS } from '../../limits.ts';
import { LruCache } from './lru-cache.ts';

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
    const { kid, privateKey } = await keys.newest();
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

/** The one algorithm; what a token says about itself is not believed. */
const SIGNING_ALGORITHM = 'EdDSA';

/** Two letters of ASCII before it, so that it meets no other lock: 'sk' 1. */
const FIRST_KEY_LOCK = 0x736b_0001;

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  readonly publicJwk: JWK;
}

interface KnownKeys {
  readonly readAt: number;
  /** The newest first. */
  readonly keys: readonly SigningKey[];
}

/**
 * The keys that access tokens are signed with: made once, kept in the database, known here for a minute. The newest signs and
 * all are accepted, so a rotation is a new row, and later the end of an old one.
 */
export class SigningKeys {
  readonly #db: Db;
  readonly #clock: Clock;
  #known: KnownKeys | undefined;
  #reading: Promise<KnownKeys> | undefined;

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db;
    this.#clock = clock;
  }

  async newest(): Promise<SigningKey> {
    const [newest] = (await this.#fresh(LIMITS.SIGNING_KEYS_KNOWN_MS)).keys;
    if (newest === undefined) throw new Error('there is no key to sign access tokens with');
    return newest;
  }

  /** Of one that is not known we ask again, because another process may have made it; but not for every forged token. */
  async find(kid: string): Promise<SigningKey | undefined> {
    const { keys } = await this.#fresh(LIMITS.SIGNING_KEYS_KNOWN_MS);
    const found = keys.find((key) => key.kid === kid);
    if (found !== undefined) return found;
    return (await this.#fresh(LIMITS.SIGNING_KEYS_LOOK_MS)).keys.find((key) => key.kid === kid);
  }

  async published(): Promise<PublicKeys> {
    const { keys } = await this.#fresh(LIMITS.SIGNING_KEYS_KNOWN_MS);
    return {
      keys: keys.map(({ kid, publicJwk: { kty = '', crv = '', x = '' } }) => ({
        ...{ kty, crv, x, kid },
        alg: SIGNING_ALGORITHM,
        use: 'sig',
      })),
    };
  }

  async #fresh(maxAgeMs: number): Promise<KnownKeys> {
    const known = this.#known;
    if (known !== undefined && this.#clock.monotonic() - known.readAt < maxAgeMs) return known;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<KnownKeys> {
    const readAt = this.#clock.monotonic();
    let rows = await this.#rows();
    if (rows.length === 0) {
      await this.#makeFirst();
      rows = await this.#rows();
    }
    const keys = await Promise.all(
      rows.map(async ({ kid, public_key, private_key }) => ({
        kid,
        publicJwk: public_key as JWK,
        publicKey: (await importJWK(public_key as JWK, SIGNING_ALGORITHM)) as CryptoKey,
        privateKey: (await importJWK(private_key as JWK, SIGNING_ALGORITHM)) as CryptoKey,
      })),
    );
    this.#known = { readAt, keys };
    return this.#known;
  }

  #rows() {
    return this.#db
      .selectFrom('signing_keys')
      .select(['kid', 'public_key', 'private_key'])
      .orderBy('created_at', 'desc')
      .orderBy('kid')
      .execute();
  }

  /** Two processes that start at once make one key between them. */
  async #makeFirst(): Promise<void> {
    const { publicKey, privateKey } = await generateKeyPair(SIGNING_ALGORITHM, { crv: 'Ed25519', extractable: true });
    const [publicJwk, privateJwk] = [await exportJWK(publicKey), await exportJWK(privateKey)];
    await this.#db.transaction().execute(async (trx) => {
      await sql`select pg_advisory_xact_lock(${FIRST_KEY_LOCK})`.execute(trx);
      const present = await trx.selectFrom('signing_keys').select('kid').limit(1).executeTakeFirst();
      if (present !== undefined) return;
      await trx
        .insertInto('signing_keys')
        .values({
          kid: randomId('sig'),
          public_key: JSON.stringify(publicJwk),
          private_key: JSON.stringify(privateJwk),
          created_at: new Date(this.#clock.now()),
        })
        .execute();
    });
  }
}
