// The key that secrets in the database are encrypted with. It is in a file outside of the database, so that a dump or a backup of the
// tables alone gives nobody a secret away.
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

/** Of `v1.<nonce>.<encrypted text and its tag>`, in base64url. Another way of encrypting gets another word. */
const VERSION = 'v1';
const FORM = /^v1\.([\w-]+)\.([\w-]+)$/;

/** Shorter ones can be guessed. 32 random bytes have 43 characters in base64 and 64 in hex. */
const SECRET_MIN_CHARACTERS = 32;

/** What bytes that are no UTF-8 are read as, all the same; and what no editor or `openssl rand -base64` writes. */
const NO_TEXT = /[\p{Cc}\uFFFD]/u;

/** What a secret is for, and whose it is: neither can be put in the place of another. */
export interface SecretPurpose {
  readonly kind: 'signing-key' | 'edge-api-secret';
  readonly id: string;
}

type DerivedKind = 'domain-token' | 'first-account' | 'refresh-binding' | 'registration';

export class MasterKey {
  readonly file: string;
  /** Every user of the machine can read it. */
  readonly isOpenToAll: boolean;
  #secret: Secret;

  constructor(file: string, secret: Secret, isOpenToAll = false) {
    this.file = file;
    this.isOpenToAll = isOpenToAll;
    this.#secret = usable(file, secret);
  }

  /** Somebody who lost it made a new one beside us, and encrypted with that. Throws a fault that names the file. */
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

  /** Throws a fault that names the file when this is not the key it was encrypted with, or when it was changed since. */
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

  /** The same bytes for the same text each time; nobody without the key can tell them. 32 of them. */
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
  /** By the configuration: then it is never made here, because other platforms on the same database need the same one. */
  readonly isGiven: boolean;
}

export const masterKeySource = (
  { secret_key_file: given }: Pick<ServerConfig['platform'], 'secret_key_file'>,
  dataDir: string,
): MasterKeySource =>
  given === '' ? { file: join(dataDir, 'master-key'), isGiven: false } : { file: resolve(given), isGiven: true };

const READ_BY_ALL = 0o004;

/** `isNeeded`: something in the database was encrypted, so that a new one would be of no use. Throws a fault that names the file. */
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
