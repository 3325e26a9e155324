// Signing keys for access tokens, as used by the platform: stored in the database and cached for a few seconds.
import type { PublicKeys } from '@tunnel/contract';
import { Cache, type Clock } from '@tunnel/runtime';
import { type CryptoKey, importJWK, type JWK } from 'jose';
import type { Db } from '../../db/database.ts';
import { DatabaseAway } from '../../db/database-away.ts';
import type { MasterKey } from '../../db/master-key.ts';
import { makeFirstSigningKey, openPrivateKey, type SigningKeyRow, signingKeyRows } from './signing-key-store.ts';

/** How long signing keys read from the database are cached. A rotation by another process takes effect within this time. */
export const SIGNING_KEYS_KNOWN_MS = 10_000;
/** Minimum interval between database queries caused by tokens with an unknown key. */
export const SIGNING_KEYS_LOOK_MS = 1000;
/** Maximum number of remembered ids of nonexistent signing keys. A forged token with such an id is rejected without another query. */
const SIGNING_KEYS_ABSENT_MAX = 4096;

/** The only signing algorithm. The algorithm in a token's header is not trusted. */
export const SIGNING_ALGORITHM = 'EdDSA';

interface VerifyingKey {
  readonly kid: string;
  readonly publicKey: CryptoKey;
  readonly publicJwk: JWK;
}

interface CurrentKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
}

interface KnownKeys {
  /** Sequence number of the database read that returned the signing keys. */
  readonly read: number;
  /** Keys that verify tokens: first the key that signs, then replaced keys. */
  readonly keys: readonly VerifyingKey[];
  readonly current: CurrentKey;
}

export interface SigningKeysOptions {
  readonly db: Db;
  readonly clock: Clock;
  /** Returns the master key, which is available after the database tables were created. */
  readonly masterKey: () => MasterKey;
}

export class SigningKeys {
  readonly #options: SigningKeysOptions;
  #known: KnownKeys | undefined;
  #reads = 0;
  /** Start of the last database read of the signing keys, on the monotonic clock. */
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<KnownKeys> | undefined;
  /** Database read of the signing keys that has not started yet. */
  #planned: Promise<KnownKeys> | undefined;
  /** Ids without a key in the database. Ids of new keys cannot be guessed, so none of these ids can become valid later. */
  readonly #absent = new Cache<string, true>({ max: SIGNING_KEYS_ABSENT_MAX });

  constructor(options: SigningKeysOptions) {
    this.#options = options;
  }

  async current(): Promise<CurrentKey> {
    return (await this.#fresh()).current;
  }

  /**
   * Finds a key that verifies tokens. For an unknown id the database is read again, because another process may have created the key. The
   * read starts after the call, so that no token of a new key is rejected. At most one such read happens per second, so that forged
   * tokens only make their own sender wait.
   */
  async find(kid: string): Promise<VerifyingKey | undefined> {
    const isIt = (key: VerifyingKey): boolean => key.kid === kid;
    const before = this.#reads;
    const known = await this.#fresh();
    const found = known.keys.find(isIt);
    if (found !== undefined || this.#absent.get(kid) === true) return found;
    const looked = known.read > before ? undefined : (await this.#readLater()).keys.find(isIt);
    if (looked === undefined) this.#absent.set(kid, true);
    return looked;
  }

  /** Finds a key among the keys in memory, regardless of their age. */
  inMemory(kid: string): VerifyingKey | undefined {
    return this.#known?.keys.find((key) => key.kid === kid);
  }

  /** Returns true if `find` may have to wait for its next database read. Before the first read, `find` reads without waiting. */
  isUnknown(kid: string): boolean {
    return this.#known !== undefined && this.inMemory(kid) === undefined;
  }

  async published(): Promise<PublicKeys> {
    const { keys } = await this.#fresh();
    return {
      keys: keys.map(({ kid, publicJwk: { kty = '', crv = '', x = '' } }) => ({
        kty,
        crv,
        x,
        kid,
        alg: SIGNING_ALGORITHM,
        use: 'sig',
      })),
    };
  }

  async #fresh(): Promise<KnownKeys> {
    const age = this.#options.clock.monotonic() - this.#readAt;
    if (this.#known !== undefined && age < SIGNING_KEYS_KNOWN_MS) return this.#known;
    return this.#reading ?? this.#read();
  }

  #readLater(): Promise<KnownKeys> {
    this.#planned ??= this.#waitForTurn().then(() => {
      this.#planned = undefined;
      return this.#read();
    });
    return this.#planned;
  }

  #waitForTurn(): Promise<void> {
    const { clock } = this.#options;
    const waitMs = this.#readAt + SIGNING_KEYS_LOOK_MS - clock.monotonic();
    if (waitMs <= 0) return Promise.resolve();
    return new Promise((resolve) => void clock.setTimeout(resolve, waitMs));
  }

  #read(): Promise<KnownKeys> {
    this.#readAt = this.#options.clock.monotonic();
    this.#reads += 1;
    const reading = this.#load(this.#reads).then(
      (known) => {
        this.#known = known;
        return known;
      },
      (error: unknown) => {
        // After a failed read the cached keys are dropped, because they may have been invalidated. While the database is unreachable, the
        // keys are kept: no request is admitted then anyway.
        if (!(error instanceof DatabaseAway)) this.#known = undefined;
        throw error;
      },
    );
    this.#reading = reading.finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #load(read: number): Promise<KnownKeys> {
    const { db, clock, masterKey } = this.#options;
    const now = clock.now();
    let rows = await signingKeyRows(db, now);
    if (rows.every(({ retired_at }) => retired_at !== null)) {
      await makeFirstSigningKey(db, masterKey(), now);
      rows = await signingKeyRows(db, now);
    }
    const [first] = rows;
    if (first === undefined) throw new Error('no signing key for access tokens');
    const privateJwk = openWith(masterKey(), first);
    return {
      read,
      keys: await Promise.all(rows.map(verifyingKey)),
      current: { kid: first.kid, privateKey: await importKey(privateJwk) },
    };
  }
}

/**
 * Decrypts the private key. On failure, reads the master key's file again and retries once. The error is not the original fault, because
 * the fault's text names the file and would be visible to API clients.
 */
const openWith = (masterKey: MasterKey, row: SigningKeyRow): JWK => {
  try {
    return openPrivateKey(masterKey, row);
  } catch {
    try {
      masterKey.readAgain();
      return openPrivateKey(masterKey, row);
    } catch (error) {
      throw new Error('cannot decrypt the signing key for access tokens', { cause: error });
    }
  }
};

const verifyingKey = async ({ kid, public_key }: SigningKeyRow): Promise<VerifyingKey> => {
  const publicJwk = public_key as JWK;
  return { kid, publicJwk, publicKey: await importKey(publicJwk) };
};

const importKey = async (jwk: JWK): Promise<CryptoKey> => (await importJWK(jwk, SIGNING_ALGORITHM)) as CryptoKey;
