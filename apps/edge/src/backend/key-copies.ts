// Copy of accepted keys on the edge's disk, for a start while the platform is unreachable. The keys stay valid for as long as without a
// restart. The file contains hashes of keys and the rights of their accounts, encrypted with a key that is derived from the edge's
// credential and never stored.
import { accountRights } from '@tunnel/contract';
import { type Clock, type Logger, SealedFiles, type Secret, SerialRuns, type Timer } from '@tunnel/runtime';
import * as z from 'zod';

/** Maximum accepted keys in the disk copy. The most recently checked keys are kept. */
const KEY_COPIES_MAX = 5000;
/** Delay between a change and writing the copy, so that a single write covers many keys. */
export const KEY_COPIES_WAIT_MS = 2000;
/** Interval at which the copy is written without a change, to update the time of the platform's last response. */
const KEY_COPIES_EVERY_MS = 5 * 60_000;
/** Maximum size of the disk copy of accepted keys. A larger file is not read. */
const KEY_COPIES_MAX_BYTES = 8 * 1024 * 1024;

/** Schema of a stored key. The owner's mail address is sent to clients but never stored. */
const keptKey = z.object({
  token_hash: z.string().regex(/^[0-9a-f]{64}$/),
  key_id: z.string(),
  unlimited: z.boolean(),
  account: accountRights,
  /** Time at which the platform last confirmed the key, in milliseconds since the epoch. */
  known_at: z.number(),
});
export type KeptKey = z.infer<typeof keptKey>;

export interface KeyCopiesOptions {
  readonly file: string;
  /**
   * True in a stack, where each start creates a new credential. A file encrypted with an earlier credential is then ignored without a
   * warning.
   */
  readonly isOfOneRun: boolean;
  readonly credential: Secret;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns the keys to store, called at the time of each write. */
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

  /** Returns the keys stored by the last run, or an empty list if the file is missing or cannot be decrypted. Never rejects. */
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

  /** Schedules a write of the accepted keys after a short delay, because many clients can connect at once. */
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

  /** Logs the first failed write. Further failures are not logged until a write succeeds. */
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
