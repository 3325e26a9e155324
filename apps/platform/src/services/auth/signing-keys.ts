// The keys that access tokens are signed with, as the platform uses them: kept in the database, known here for a few seconds.
import type { PublicKeys } from '@tunnel/contract';
import { Cache, type Clock } from '@tunnel/runtime';
import { type CryptoKey, importJWK, type JWK } from 'jose';
import type { Db } from '../../db/database.ts';
import { DatabaseAway } from '../../db/database-away.ts';
import type { MasterKey } from '../../db/master-key.ts';
import { makeFirstSigningKey, openPrivateKey, type SigningKeyRow, signingKeyRows } from './signing-key-store.ts';

/** How long keys that sign tokens are known: a rotation elsewhere is seen within it. And how often an unknown one makes us look. */
export const SIGNING_KEYS_KNOWN_MS = 10_000;
/** How often a token of an unknown key makes the platform look for new keys. */
export const SIGNING_KEYS_LOOK_MS = 1000;
/** Names of signing keys that do not exist, by which a forged token is refused without another look. */
const SIGNING_KEYS_ABSENT_MAX = 4096;

/** The one algorithm; what a token says about itself is not believed. */
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
  /** The number of the read that found them. */
  readonly read: number;
  /** The one that signs first; then those that it replaced, as long as they verify. */
  readonly keys: readonly VerifyingKey[];
  readonly current: CurrentKey;
}

export interface SigningKeysOptions {
  readonly db: Db;
  readonly clock: Clock;
  /** There once the tables are. */
  readonly masterKey: () => MasterKey;
}

export class SigningKeys {
  readonly #options: SigningKeysOptions;
  #known: KnownKeys | undefined;
  #reads = 0;
  /** When the last read began. */
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<KnownKeys> | undefined;
  /** A read that has not begun yet. */
  #planned: Promise<KnownKeys> | undefined;
  /** Names that were looked for and are no key's. Keys have names that nobody can guess, so that none of these becomes one later. */
  readonly #absent = new Cache<string, true>({ max: SIGNING_KEYS_ABSENT_MAX });

  constructor(options: SigningKeysOptions) {
    this.#options = options;
  }

  async current(): Promise<CurrentKey> {
    return (await this.#fresh()).current;
  }

  /**
   * One that is not known is looked for, because another process may have made it since: by a read that begins after it was asked for,
   * so that no token of a new key is refused, and at most once a second, so that forged tokens cost no more than their own wait.
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

  /** One that this process knows, however long ago it was read. */
  inMemory(kid: string): VerifyingKey | undefined {
    return this.#known?.keys.find((key) => key.kid === kid);
  }

  /** Whether `find` may have to wait for its next look. Where nothing was read yet it reads at once. */
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
        // Those that are known may have been ended. While the database is away nobody knows, and nobody is let in either.
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

/** Not a fault, whose text names the file: callers read that. */
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
