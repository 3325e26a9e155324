// Texts that browsers carry for us: sealed so that nobody reads or changes them, each by a key for its purpose, host, owner and provider.

import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto';
import type { Secret } from '@tunnel/runtime';
import { BoundedCache } from './bounded-cache.ts';
import { LOGIN_COOKIE_MAX_BYTES, POLICY_CACHE_CHARS_MAX } from './limits.ts';

/** keys that were derived from the login secrets: one for each host, owner and provider; the least used go first */
const LOGIN_KEYS_KEPT_MAX = 10_000;

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** What a sealed text is good for; whoever opens it must name the same. */
export type SealPurpose = 'login' | 'pending' | 'state' | 'code';

export interface SealBinding {
  readonly purpose: SealPurpose;
  /** Host, owner and provider, or what else tells this use from others. */
  readonly parts: readonly string[];
  /** Whose key it is, where keys are kept; absent: the edge's own. */
  readonly tenant?: string | undefined;
}

export class SealedTexts {
  /** The first one seals, all of them open: so a secret is changed without logging anybody out. */
  readonly #secrets: readonly Secret[];
  readonly #keys = new BoundedCache<readonly Buffer[]>({
    entriesMax: LOGIN_KEYS_KEPT_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });

  constructor(secrets: readonly Secret[]) {
    if (secrets.length === 0) throw new Error('no login secret');
    this.#secrets = secrets;
  }

  /** `beside`: not in it, but it opens only together with that. */
  seal(binding: SealBinding, text: string, beside = ''): string {
    const [key] = this.#keysOf(binding);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, key as Buffer, nonce).setAAD(Buffer.from(beside, 'utf8'));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return sealed.toString('base64url');
  }

  /** null: not one of ours for this, or changed on its way. */
  open(binding: SealBinding, sealed: string, beside = ''): string | null {
    if (sealed.length > LOGIN_COOKIE_MAX_BYTES || !/^[\w-]+$/.test(sealed)) return null;
    const bytes = Buffer.from(sealed, 'base64url');
    // In its one spelling: bits that no byte has a place for would make several of it.
    if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== sealed) return null;
    for (const key of this.#keysOf(binding)) {
      const text = openWith(key, bytes, beside);
      if (text !== null) return text;
    }
    return null;
  }

  #keysOf({ purpose, parts, tenant = '' }: SealBinding): readonly Buffer[] {
    // As JSON, so that no two lists of parts are the same text; by its digest, as HKDF takes 1024 bytes of it.
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
