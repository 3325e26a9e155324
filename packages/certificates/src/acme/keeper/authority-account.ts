// The account at the authority: created once, stored encrypted, identified by its key, and opened when the first order needs it.
import type { Clock } from '@tunnel/runtime';
import type { JWK } from 'jose';
import { type AccountOptions, type AcmeAccount, type AcmeClient, newAccountKey } from '../client/acme-client.ts';
import { AcmeProblem } from '../client/acme-problem.ts';
import type { CertificateStore, StoredAccount } from './certificate-store.ts';
import type { SealedKeys } from './sealed-keys.ts';

/** Time until a failed opening of the account is repeated; shorter than the first retry delay of an order. */
const ACCOUNT_AGAIN_MS = 30_000;

export interface AuthorityAccountOptions extends AccountOptions {
  readonly client: AcmeClient;
  readonly store: CertificateStore;
  readonly keys: SealedKeys;
  readonly clock: Clock;
}

export class AuthorityAccount {
  readonly #options: AuthorityAccountOptions;
  #opened: Promise<AcmeAccount> | undefined;
  #forgetAt = Number.POSITIVE_INFINITY;

  constructor(options: AuthorityAccountOptions) {
    this.#options = options;
  }

  /**
   * Returns the account. After a failure, all callers get the same error for a while, so that a thousand names do not cause a thousand
   * calls.
   */
  open(): Promise<AcmeAccount> {
    const { clock } = this.#options;
    if (clock.monotonic() >= this.#forgetAt) this.#opened = undefined;
    this.#opened ??= this.#open().catch((error: unknown) => {
      // Authorities reject nonces by chance, so after such an error only the current order waits.
      const isChance = error instanceof AcmeProblem && error.type === 'badNonce';
      const askedMs = error instanceof AcmeProblem ? (error.retryAfterMs ?? 0) : 0;
      this.#forgetAt = isChance ? 0 : clock.monotonic() + Math.max(askedMs, ACCOUNT_AGAIN_MS);
      throw error;
    });
    return this.#opened;
  }

  /** Called if the authority does not know the account. The next order registers the same key again. */
  async isUnknown(): Promise<void> {
    this.#opened = undefined;
    const stored = await this.#options.store.account();
    if (stored !== null) await this.#options.store.saveAccount({ ...stored, url: null }, stored.key);
  }

  async #open(): Promise<AcmeAccount> {
    this.#forgetAt = Number.POSITIVE_INFINITY;
    const { client, store, keys, email, eab } = this.#options;
    const stored = await this.#stored();
    const key = JSON.parse(await keys.open(stored.key)) as JWK;
    if (stored.url === null) {
      const account = await client.openAccount(key, { email, eab });
      await store.saveAccount({ key: stored.key, url: account.url, email }, stored.key);
      return account;
    }
    const account = await client.knownAccount(key, stored.url);
    if (stored.email !== email) {
      await account.setEmail(email);
      await store.saveAccount({ ...stored, email }, stored.key);
    }
    return account;
  }

  /** Stores the key before it is registered, so that two first starts at the same time use the same key. */
  async #stored(): Promise<StoredAccount> {
    const { store, keys, email } = this.#options;
    const found = await store.account();
    if (found !== null) return found;
    const key = await keys.seal(JSON.stringify(await newAccountKey()));
    return store.saveAccount({ key, url: null, email }, null);
  }
}
