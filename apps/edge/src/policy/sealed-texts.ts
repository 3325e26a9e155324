// Texts that browsers store for the edge, encrypted and authenticated with a separate key for each purpose, host, owner and provider.

import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto';
import type { Secret } from '@tunnel/runtime';
import { BoundedCache } from './bounded-cache.ts';
import { LOGIN_COOKIE_MAX_BYTES, POLICY_CACHE_CHARS_MAX } from './limits.ts';

/**
 * Maximum number of cached keys derived from the login secrets: a key for each host, owner and provider. The least recently used key is
 * evicted first.
 */
const LOGIN_KEYS_KEPT_MAX = 10_000;

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Purpose of a sealed text. A text opens only with the purpose it was sealed with. */
export type SealPurpose = 'login' | 'pending' | 'state' | 'code';

export interface SealBinding {
  readonly purpose: SealPurpose;
  /** Host, owner and provider, or other parts that distinguish this use from others. */
  readonly parts: readonly string[];
  /** Tenant charged for the cached key. Default: the edge. */
  readonly tenant?: string | undefined;
}

export class SealedTexts {
  /**
   * Login secrets. The first secret seals; every secret can open. An operator can therefore change the secret without signing out
   * visitors.
   */
  readonly #secrets: readonly Secret[];
  readonly #keys = new BoundedCache<readonly Buffer[]>({
    entriesMax: LOGIN_KEYS_KEPT_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });

  constructor(secrets: readonly Secret[]) {
    if (secrets.length === 0) throw new Error('no login secret');
    this.#secrets = secrets;
  }

  /**
   * Encrypts a text. `beside` is additional authenticated data: it is not part of the sealed text, but must be presented again to open
   * the text.
   */
  seal(binding: SealBinding, text: string, beside = ''): string {
    const [key] = this.#keysOf(binding);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, key as Buffer, nonce).setAAD(Buffer.from(beside, 'utf8'));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return sealed.toString('base64url');
  }

  /** Decrypts a sealed text. Returns null if the text was not sealed by this edge for the same binding, or was modified. */
  open(binding: SealBinding, sealed: string, beside = ''): string | null {
    if (sealed.length > LOGIN_COOKIE_MAX_BYTES || !/^[\w-]+$/.test(sealed)) return null;
    const bytes = Buffer.from(sealed, 'base64url');
    // Accept only the canonical base64url encoding. Unused trailing bits would otherwise allow several spellings of the same text.
    if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== sealed) return null;
    for (const key of this.#keysOf(binding)) {
      const text = openWith(key, bytes, beside);
      if (text !== null) return text;
    }
    return null;
  }

  #keysOf({ purpose, parts, tenant = '' }: SealBinding): readonly Buffer[] {
    // Encode the parts as JSON, so that different lists of parts never become the same text. Hash the text, because HKDF accepts at most
    // 1,024 bytes of info.
    const bound = JSON.stringify([purpose, ...parts]);
    const known = this.#keys.get(bound, 0);
    if (known !== undefined) return known;
    const info = `tunnel ${hash('sha256', bound)}`;
    const keys = this.#secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret.reveal(), '', info, KEY_BYTES)));
    this.#keys.set(tenant, bound, keys, Number.POSITIVE_INFINITY);
    return keys;
  }
}

const openWith = (key: Buffer, bytes: Buffer, beside: string): string | null => {
  try {
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(beside, 'utf8')).setAuthTag(bytes.subarray(-TAG_BYTES));
    const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    return text.toString('utf8');
  } catch {
    return null;
  }
};
