// Files encrypted with a secret: compact JWE (RFC 7516) under a key derived from the secret and stored nowhere. Implemented with
// node:crypto, because jose takes ten times as long, and an edge may open ten thousand files before it listens.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Secret } from '../secret.ts';
import { readBoundedSync, writeAtomic } from './atomic-file.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The protected header at the start of every file (RFC 7516, 7.1). */
const HEAD = Buffer.from(JSON.stringify({ alg: 'dir', enc: 'A256GCM' })).toString('base64url');
const AUTHENTICATED = Buffer.from(HEAD, 'latin1');

export class SealedFiles {
  readonly #key: Uint8Array;

  /** `purpose` is part of the key, so files for one purpose cannot be opened as files for another. */
  constructor(secret: Secret, purpose: string) {
    this.#key = new Uint8Array(hkdfSync('sha256', secret.reveal(), '', purpose, KEY_BYTES));
  }

  /** Replaces the file with a flush. A path must not be written concurrently. On a full disk the old file stays. */
  write(path: string, value: unknown): Promise<void> {
    return writeAtomic(path, this.#seal(JSON.stringify(value)), { flush: true, soleWriter: true });
  }

  /**
   * Returns the written value, or undefined if there is no file. Throws for a file that is too large, corrupt or encrypted with another
   * secret.
   */
  read(path: string, maxBytes: number): unknown {
    const sealed = readBoundedSync(path, maxBytes);
    return sealed === null ? undefined : JSON.parse(this.#open(sealed));
  }

  #seal(text: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES }).setAAD(AUTHENTICATED);
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return [HEAD, '', ...[nonce, sealed, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join('.');
  }

  #open(sealed: string): string {
    const [head, wrapped, nonce = '', text = '', tag = '', ...rest] = sealed.trim().split('.');
    if (head !== HEAD || wrapped !== '' || rest.length > 0)
      throw new Error('the file is encrypted in an unknown format');
    const cipher = createDecipheriv(CIPHER, this.#key, Buffer.from(nonce, 'base64url'), { authTagLength: TAG_BYTES });
    cipher.setAAD(AUTHENTICATED).setAuthTag(Buffer.from(tag, 'base64url'));
    return Buffer.concat([cipher.update(Buffer.from(text, 'base64url')), cipher.final()]).toString();
  }
}
