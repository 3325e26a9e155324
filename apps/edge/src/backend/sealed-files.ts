// Files that an edge can open as long as it has its credential, and nobody without: compact JWE under a key that is derived from it and written nowhere.
import { hkdfSync } from 'node:crypto';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { Secret } from '@tunnel/runtime';

const KEY_BYTES = 32;
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
    const sealed = await new CompactEncrypt(text).setProtectedHeader({ alg: 'dir', enc: 'A256GCM' }).encrypt(this.#key);
    try {
      await rm(aside, { force: true });
      await writeFile(aside, sealed, { mode: 0o600, flag: 'wx', flush: true });
      await rename(aside, path);
    } catch (error) {
      await rm(aside, { force: true }).catch(() => {});
      throw error;
    }
  }

  /** As JSON has it. Rejects where there is none, it is too large, or it was sealed by another. */
  async read(path: string, maxBytes: number): Promise<unknown> {
    const { size } = await stat(path);
    if (size > maxBytes) throw new Error(`it has ${size} bytes`);
    const { compactDecrypt } = await import('jose');
    const { plaintext } = await compactDecrypt(await readFile(path, 'utf8'), this.#key, {
      keyManagementAlgorithms: ['dir'],
      contentEncryptionAlgorithms: ['A256GCM'],
    });
    return JSON.parse(Buffer.from(plaintext).toString());
  }
}
