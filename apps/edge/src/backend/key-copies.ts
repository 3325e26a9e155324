// Accepted keys on the edge's disk, for a start while the platform is away: they stand for as long as they would have without that start. Hashes of keys and
// the rights of their accounts, sealed under a key that is derived from the edge's credential and written nowhere.
import { hkdfSync } from 'node:crypto';
import { chmod, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { accountRights } from '@tunnel/contract';
import type { Clock, Logger, Secret, Timer } from '@tunnel/runtime';
import * as z from 'zod';
import { EDGE_LIMITS } from '../limits.ts';

/** Without the address of who has it: that is told, and never stored. */
const keptKey = z.object({
  token_hash: z.string().regex(/^[0-9a-f]{64}$/),
  key_id: z.string(),
  unlimited: z.boolean(),
  account: accountRights,
  /** When the platform last stood by it, in milliseconds since the epoch. */
  known_at: z.number(),
});
export type KeptKey = z.infer<typeof keptKey>;

export interface KeyCopiesOptions {
  readonly file: string;
  readonly credential: Secret;
  readonly clock: Clock;
  readonly logger: Logger;
  /** As they are when they are written. */
  readonly read: () => readonly KeptKey[];
}

const KEY_BYTES = 32;

export class KeyCopies {
  readonly #options: KeyCopiesOptions;
  readonly #key: Uint8Array;
  #soon: Timer | undefined;
  #often: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(options: KeyCopiesOptions) {
    this.#options = options;
    const secret = options.credential.reveal();
    this.#key = new Uint8Array(hkdfSync('sha256', secret, '', 'tunnel copies of keys', KEY_BYTES));
  }

  /** Those of the last run; none where there is no file, or it cannot be opened. Never rejects. */
  async start(): Promise<readonly KeptKey[]> {
    const { clock, file, logger } = this.#options;
    this.#often = clock.setInterval(() => this.changed(), EDGE_LIMITS.KEY_COPIES_EVERY_MS);
    try {
      const { size } = await stat(file);
      if (size > EDGE_LIMITS.KEY_COPIES_MAX_BYTES) throw new Error(`it has ${size} bytes`);
      const { compactDecrypt } = await import('jose');
      const { plaintext } = await compactDecrypt(await readFile(file, 'utf8'), this.#key, {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      });
      return z.array(keptKey).parse(JSON.parse(Buffer.from(plaintext).toString()));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        logger.warn({ file, reason: (error as Error).message }, 'the copy of known keys cannot be opened');
      }
      return [];
    }
  }

  /** The disk follows in a moment: many clients come at once. */
  changed(): void {
    this.#soon ??= this.#options.clock.setTimeout(() => {
      this.#soon = undefined;
      this.#writing = this.#writing.then(() => this.#write());
    }, EDGE_LIMITS.KEY_COPIES_WAIT_MS);
  }

  async stop(): Promise<void> {
    this.#often?.cancel();
    this.#soon?.cancel();
    await this.#writing;
    await this.#write();
  }

  async #write(): Promise<void> {
    const { file, read } = this.#options;
    const aside = `${file}.new`;
    try {
      const { CompactEncrypt } = await import('jose');
      const kept = read().slice(-EDGE_LIMITS.KEY_COPIES_MAX);
      const text = Buffer.from(JSON.stringify(kept));
      const sealed = await new CompactEncrypt(text)
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .encrypt(this.#key);
      // Moved when it is whole: on a full disk the one before stays.
      await writeFile(aside, sealed, { mode: 0o600, flush: true });
      await chmod(aside, 0o600);
      await rename(aside, file);
      this.#hasFailed = false;
    } catch (error) {
      await rm(aside, { force: true }).catch(() => {});
      this.#failed(error as Error);
    }
  }

  /** Once, until it works again. */
  #failed({ message: reason }: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const { file, logger } = this.#options;
    logger.error({ file, reason }, 'known keys cannot be kept: after a start without the platform clients wait for it');
  }
}
