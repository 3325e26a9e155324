// Files that an edge can open as long as it has its credential, and nobody without: compact JWE under a key that is derived from it and written nowhere.
import { createDecipheriv, hkdfSync } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import type { Secret } from '@tunnel/runtime';

const KEY_BYTES = 32;
const TAG_BYTES = 16;
const PROTECTED = { alg: 'dir', enc: 'A256GCM' } as const;
/** The protected header as every file of ours begins (RFC 7516, 7.1). */
const HEAD = Buffer.from(JSON.stringify(PROTECTED)).toString('base64url');
export const ASIDE = '.new';

export class SealedFiles {
  readonly #key: Uint8Array;

  /** `use`: what is sealed for one opens nothing of another. */
  constructor(credential: Secret, use: string) {
    this.#key = new Uint8Array(hkdfSync('sha256', credential.reveal(), '', `tunnel copies of ${use}`, KEY_BYTES));
  }

  /** Moved when it is whole: on a full disk the one before stays. */
  async write(path: string, value: unknown): Promise<void> {
    const aside = path + ASIDE;
    const { CompactEncrypt } = await import('jose');
    const text = Buffer.from(JSON.stringify(value));
    const sealed = await new CompactEncrypt(text).setProtectedHeader(PROTECTED).encrypt(this.#key);
    try {
      await rm(aside, { force: true });
      await writeFile(aside, sealed, { mode: 0o600, flag: 'wx', flush: true });
      await rename(aside, path);
    } catch (error) {
      await rm(aside, { force: true }).catch(() => {});
      throw error;
    }
  }

  /** The value, as JSON has it. Throws where there is no file, it is too large, or it was sealed by another. */
  read(path: string, maxBytes: number): unknown {
    const found = statSync(path);
    // Anything else may keep the reader waiting for ever.
    if (!found.isFile()) throw new Error('it is no file');
    const { size } = found;
    if (size > maxBytes) throw new Error(`it has ${size} bytes`);
    return JSON.parse(this.#open(readFileSync(path, 'utf8')).toString());
  }

  /** Opened here and not by the library, which takes ten times as long: an edge may have ten thousand files to open before its ports are. */
  #open(sealed: string): Buffer {
    const [head = '', wrapped, nonce = '', text = '', tag = '', ...rest] = sealed.trim().split('.');
    if (head !== HEAD || wrapped !== '' || rest.length > 0) throw new Error('it is sealed in another way');
    const opened = createDecipheriv('aes-256-gcm', this.#key, Buffer.from(nonce, 'base64url'), {
      authTagLength: TAG_BYTES,
    });
    opened.setAAD(Buffer.from(head, 'latin1')).setAuthTag(Buffer.from(tag, 'base64url'));
    return Buffer.concat([opened.update(Buffer.from(text, 'base64url')), opened.final()]);
  }
}
