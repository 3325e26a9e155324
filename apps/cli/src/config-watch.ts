// Tells when the content of a file has changed. The folder is watched, not the file: editors write a new one and rename it.
import { type FSWatcher, lstatSync, readFileSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type Clock, sha256Hex, type Timer } from '@tunnel/runtime';

/** An editor's several writes are one change. */
const QUIET_MS = 300;

export interface ConfigWatchOptions {
  readonly file: string;
  readonly clock: Pick<Clock, 'setTimeout'>;
  readonly onChange: () => void;
  /** It cannot be watched, or no more. */
  readonly onTrouble: (error: NodeJS.ErrnoException) => void;
}

export class ConfigWatch {
  readonly #options: ConfigWatchOptions;
  #watcher: FSWatcher | null = null;
  #quiet: Timer | null = null;
  /** Of what was last told of, or there at the start; a file that is gone is no content. */
  #hash: string | null;

  constructor(options: ConfigWatchOptions) {
    this.#options = options;
    this.#hash = hashOf(options.file);
  }

  /** Somebody else has just read the file, and this is what it says. */
  seen(text: string): void {
    this.#hash = sha256Hex(text);
  }

  start(): void {
    if (this.#watcher !== null) return;
    const { file, onTrouble } = this.#options;
    try {
      this.#watcher = watch(dirname(file), { persistent: false }, (_event, name) => this.#onEvent(name));
      this.#watcher.on('error', (error) => {
        this.stop();
        onTrouble(error);
      });
    } catch (error) {
      onTrouble(error as NodeJS.ErrnoException);
    }
  }

  stop(): void {
    this.#watcher?.close();
    this.#watcher = null;
    this.#quiet?.cancel();
    this.#quiet = null;
  }

  #onEvent(name: string | null): void {
    const { file, clock } = this.#options;
    // A link may lead anywhere: what changes beside it counts too, and must not put off the look for ever, as a log in this folder would.
    if (name !== null && name !== basename(file) && (this.#quiet !== null || !isLink(file))) return;
    this.#quiet?.cancel();
    this.#quiet = clock.setTimeout(() => {
      this.#quiet = null;
      this.#look();
    }, QUIET_MS);
  }

  #look(): void {
    const hash = hashOf(this.#options.file);
    if (hash === null || hash === this.#hash) return;
    this.#hash = hash;
    this.#options.onChange();
  }
}

const isLink = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;

const hashOf = (file: string): string | null => {
  try {
    // As config files are read: without the mark that some editors begin with.
    return sha256Hex(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  } catch {
    return null;
  }
};
