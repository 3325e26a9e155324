// The keys that access tokens are signed with: made once, kept in the database, known here for a minute. The newest signs and
// all are accepted, so a rotation is a new row, and later the end of an old one.
import type { PublicKeys } from '@tunnel/contract';
import { type Clock, randomId } from '@tunnel/runtime';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';

/** The one algorithm; what a token says about itself is not believed. */
export const SIGNING_ALGORITHM = 'EdDSA';

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
    const [newest] = (await this.#fresh(PLATFORM_BOUNDS.SIGNING_KEYS_KNOWN_MS)).keys;
    if (newest === undefined) throw new Error('there is no key to sign access tokens with');
    return newest;
  }

  /** Of one that is not known we ask again, because another process may have made it; but not for every forged token. */
  async find(kid: string): Promise<SigningKey | undefined> {
    const { keys } = await this.#fresh(PLATFORM_BOUNDS.SIGNING_KEYS_KNOWN_MS);
    const found = keys.find((key) => key.kid === kid);
    if (found !== undefined) return found;
    return (await this.#fresh(PLATFORM_BOUNDS.SIGNING_KEYS_LOOK_MS)).keys.find((key) => key.kid === kid);
  }

  async published(): Promise<PublicKeys> {
    const { keys } = await this.#fresh(PLATFORM_BOUNDS.SIGNING_KEYS_KNOWN_MS);
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
