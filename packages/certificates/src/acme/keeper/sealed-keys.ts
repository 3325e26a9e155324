// Encrypts private keys at rest: compact JWE (`dir`, A256GCM) under a key file, so that copied files or tables are useless without the key
// file.
import { existsSync } from 'node:fs';
import { Fault } from '@tunnel/errors';
import { ensureSecretFile, readSecretFile, sha256Hex } from '@tunnel/runtime';
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';

const KEY_BYTES = 32;
const KID_CHARS = 16;

export interface KeyFile {
  readonly file: string;
  /** True if the operator names the file. Then it is never created here, because other processes need the same file. */
  readonly isGiven: boolean;
}

export class SealedKeys {
  readonly #file: string;
  readonly #key: Buffer;
  readonly #kid: string;

  private constructor(file: string, key: Buffer) {
    this.#file = file;
    this.#key = key;
    this.#kid = sha256Hex(`kid ${key.toString('base64url')}`).slice(0, KID_CHARS);
  }

  /** Opens the file with the key that encrypts private keys. Throws a fault that names the file. */
  static open({ file, isGiven }: KeyFile): SealedKeys {
    try {
      if (isGiven && !existsSync(file)) throw unusable(file, 'the file does not exist');
      const secret = (readSecretFile(file) ?? ensureSecretFile(file)).reveal();
      const key = Buffer.from(secret, 'base64url');
      if (!/^[\w-]{43}$/.test(secret) || key.length !== KEY_BYTES) {
        throw unusable(file, `the file does not contain ${KEY_BYTES} bytes in base64url`);
      }
      return new SealedKeys(file, key);
    } catch (error) {
      throw error instanceof Fault ? error : unusable(file, (error as Error).message, error);
    }
  }

  seal(text: string): Promise<string> {
    return new CompactEncrypt(Buffer.from(text))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: this.#kid })
      .encrypt(this.#key);
  }

  /** Throws a fault that names the file if the text was encrypted with another key or modified. */
  async open(sealed: string): Promise<string> {
    try {
      if (decodeProtectedHeader(sealed).kid !== this.#kid) throw new Error('another kid');
      const { plaintext } = await compactDecrypt(sealed, this.#key, {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      });
      return Buffer.from(plaintext).toString();
    } catch (error) {
      throw unusable(this.#file, 'the stored keys were encrypted with another key', error);
    }
  }
}

const unusable = (file: string, reason: string, cause?: unknown): Fault =>
  new Fault('CERTIFICATE_KEY_FILE', { file, reason }, cause === undefined ? {} : { cause });
