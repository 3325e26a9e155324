// Accepted keys on the edge's disk, for a start while the platform is away: they stand for as long as they would have without that start. Hashes of keys and
// the rights of their accounts, sealed under a key that is derived from the edge's credential and written nowhere.
import { accountRights } from '@tunnel/contract';
import { type Clock, type Logger, SealedFiles, type Secret, SerialRuns, type Timer } from '@tunnel/runtime';
import * as z from 'zod';

/** accepted keys that are kept on the disk for a start without the platform; the last ones */
const KEY_COPIES_MAX = 5000;
/** the copy waits so long for more keys */
export const KEY_COPIES_WAIT_MS = 2000;
/** how often it is written anew, so that it says until when the platform was heard */
const KEY_COPIES_EVERY_MS = 5 * 60_000;
/** a larger file of them is not read */
const KEY_COPIES_MAX_BYTES = 8 * 1024 * 1024;

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
  /** The credential is a new one at each start of a stack: a file that an earlier one sealed is left alone without a warning. */
  readonly isOfOneRun: boolean;
  readonly credential: Secret;
  readonly clock: Clock;
  readonly logger: Logger;
  /** As they are when they are written. */
  readonly read: () => readonly KeptKey[];
}

export class KeyCopies {
  readonly #options: KeyCopiesOptions;
  readonly #files: SealedFiles;
  #soon: Timer | undefined;
  #often: Timer | undefined;
  readonly #writes = new SerialRuns(() => this.#write());
  #hasFailed = false;

  constructor(options: KeyCopiesOptions) {
    this.#options = options;
    this.#files = new SealedFiles(options.credential, 'tunnel copies of keys');
  }

  /** Those of the last run; none where there is no file, or it cannot be opened. Never rejects. */
  async start(): Promise<readonly KeptKey[]> {
    const { clock, file, isOfOneRun, logger } = this.#options;
    this.#often = clock.setInterval(() => this.changed(), KEY_COPIES_EVERY_MS);
    try {
      return z.array(keptKey).parse(this.#files.read(file, KEY_COPIES_MAX_BYTES) ?? []);
    } catch (error) {
      const reason = (error as Error).message;
      if (!isOfOneRun) logger.warn({ file, reason }, 'cannot decrypt the copy of known API keys');
      return [];
    }
  }

  /** The disk follows in a moment: many clients come at once. */
  changed(): void {
    this.#soon ??= this.#options.clock.setTimeout(() => {
      this.#soon = undefined;
      void this.#writes.run();
    }, KEY_COPIES_WAIT_MS);
  }

  async stop(): Promise<void> {
    this.#often?.cancel();
    this.#soon?.cancel();
    await this.#writes.run();
  }

  async #write(): Promise<void> {
    const { file, read } = this.#options;
    try {
      await this.#files.write(file, read().slice(-KEY_COPIES_MAX));
      this.#hasFailed = false;
    } catch (error) {
      this.#failed(error as Error);
    }
  }

  /** Once, until it works again. */
  #failed({ message: reason }: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const { file, logger } = this.#options;
    logger.error(
      { file, reason },
      'cannot save known API keys; after a start without the platform, clients have to wait',
    );
  }
}
