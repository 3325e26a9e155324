// The master key, which encrypts secrets in the database. The key is stored in a file outside the database, so that a dump or backup of
// the tables reveals no secrets.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { ensureSecretFile, readSecretFile, type Secret } from '@tunnel/runtime';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Prefix of encrypted text: `v1.<nonce>.<encrypted text and its tag>`, in base64url. A different encryption method gets a different
 * prefix.
 */
const VERSION = 'v1';
const FORM = /^v1\.([\w-]+)\.([\w-]+)$/;

/** Minimum length of a master key; shorter keys could be guessed. 32 random bytes have 43 characters in base64 and 64 in hex. */
const SECRET_MIN_CHARACTERS = 32;

/**
 * Characters that a text file never contains: control characters, and U+FFFD, into which invalid UTF-8 is decoded. Neither editors nor
 * `openssl rand -base64` write such characters.
 */
const NO_TEXT = /[\p{Cc}\uFFFD]/u;

/** Purpose and owner of an encrypted secret. Both are part of the encryption, so that a secret cannot be put in the place of another. */
export interface SecretPurpose {
  readonly kind: 'signing-key' | 'edge-api-secret';
  readonly id: string;
}

type DerivedKind = 'domain-token' | 'first-account' | 'refresh-binding' | 'registration';

export class MasterKey {
  readonly file: string;
  /** True if every user of the machine can read the key file. */
  readonly isOpenToAll: boolean;
  #secret: Secret;

  constructor(file: string, secret: Secret, isOpenToAll = false) {
    this.file = file;
    this.isOpenToAll = isOpenToAll;
    this.#secret = usable(file, secret);
  }

  /**
   * Reads the key file again. After a loss of the file, an operator may have created a new key while this process was running, and newer
   * secrets are encrypted with that key. Throws a fault that names the file.
   */
  readAgain(): void {
    const found = readSecretFile(this.file);
    if (found === null) throw unusable(this.file, 'the file does not exist');
    this.#secret = usable(this.file, found);
  }

  encrypt(purpose: SecretPurpose, text: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#keyFor(purpose), nonce).setAAD(Buffer.from(purpose.id));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${nonce.toString('base64url')}.${sealed.toString('base64url')}`;
  }

  /** Decrypts a secret. Throws a fault that names the file if the secret was encrypted with a different key, or was changed since. */
  decrypt(purpose: SecretPurpose, encrypted: string): string {
    const [, nonce = '', text = ''] = FORM.exec(encrypted) ?? [];
    const sealed = Buffer.from(text, 'base64url');
    try {
      const decipher = createDecipheriv(CIPHER, this.#keyFor(purpose), Buffer.from(nonce, 'base64url'), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(purpose.id));
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      return decipher.update(sealed.subarray(0, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch (error) {
      throw unusable(this.file, 'the secrets in the database were encrypted with a different key', error);
    }
  }

  /** Derives 32 bytes from a text. The same text always gives the same bytes, which cannot be computed without the key. */
  derive(kind: DerivedKind, text: string): Buffer {
    return createHmac('sha256', this.#keyFor({ kind })).update(text).digest();
  }

  #keyFor({ kind }: { readonly kind: SecretPurpose['kind'] | DerivedKind }): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#secret.reveal(), '', `tunnel ${VERSION} ${kind}`, KEY_BYTES));
  }
}

const usable = (file: string, secret: Secret): Secret => {
  if (NO_TEXT.test(secret.reveal())) throw unusable(file, 'the file is not text');
  if (secret.reveal().length >= SECRET_MIN_CHARACTERS) return secret;
  throw unusable(file, `the file has fewer than ${SECRET_MIN_CHARACTERS} characters`);
};

export const isEncrypted = (text: string): boolean => text.startsWith(`${VERSION}.`);

export interface MasterKeySource {
  readonly file: string;
  /**
   * True if the configuration names the file. Such a file is never created automatically, because other platforms on the same database
   * need the same key.
   */
  readonly isGiven: boolean;
}

export const masterKeySource = (
  { secret_key_file: given }: Pick<ServerConfig['platform'], 'secret_key_file'>,
  dataDir: string,
): MasterKeySource =>
  given === '' ? { file: join(dataDir, 'master-key'), isGiven: false } : { file: resolve(given), isGiven: true };

const READ_BY_ALL = 0o004;

/**
 * Opens the master key, or creates a new key. With `isNeeded`, the database contains encrypted secrets, for which a new key would be
 * useless. Throws a fault that names the file.
 */
export const openMasterKey = ({ file, isGiven }: MasterKeySource, isNeeded: boolean): MasterKey => {
  try {
    const found = readSecretFile(file);
    if (found === null && isGiven) throw unusable(file, 'the file does not exist');
    if (found === null && isNeeded) {
      throw unusable(file, 'the file does not exist, and secrets in the database were encrypted with the key');
    }
    const secret = found ?? ensureSecretFile(file);
    return new MasterKey(file, secret, (statSync(file).mode & READ_BY_ALL) !== 0);
  } catch (error) {
    throw error instanceof Fault ? error : unusable(file, (error as Error).message, error);
  }
};

const unusable = (file: string, reason: string, cause?: unknown): Fault =>
  new Fault('CONFIG_SECRET_KEY', { file, reason }, cause === undefined ? {} : { cause });
