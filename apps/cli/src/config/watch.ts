// Detection of changed file content, and the watched files of a run: config.yml, and the policy files named in config.yml.
import { type FSWatcher, lstatSync, readFileSync, realpathSync, watch as watchFolder } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type Clock, sha256Hex, type Timer } from '@tunnel/runtime';
import type { LoadedConfig } from './file.ts';

/** Quiet time before a change is reported, so that several writes by an editor count as one change. */
const QUIET_MS = 300;

export interface ConfigWatchOptions {
  readonly file: string;
  readonly clock: Pick<Clock, 'setTimeout'>;
  readonly onChange: () => void;
  /** Called if the file cannot be watched, or can no longer be watched. */
  readonly onTrouble: (error: NodeJS.ErrnoException) => void;
}

/**
 * Watches a file through its folder, because editors write a new file and rename it. For a symbolic link, both the link's folder and the
 * folder of the link's target are watched.
 */
export class ConfigWatch {
  readonly #options: ConfigWatchOptions;
  /** File system watchers by folder. */
  readonly #watchers = new Map<string, FSWatcher>();
  #quiet: Timer | null = null;
  /** Hash of the content last reported, or of the content at the start. Null for a missing file, which has no content. */
  #hash: string | null;

  constructor(options: ConfigWatchOptions) {
    this.#options = options;
    this.#hash = hashOf(options.file);
  }

  /** Records content that other code has just read, given as SHA-256, so that this content is not reported as a change. */
  seen(hash: string): void {
    this.#hash = hash;
  }

  start(): void {
    const isNew = this.#watchers.size === 0;
    const folders = foldersOf(this.#options.file);
    // The symbolic link may have a new target in another folder.
    for (const [folder, watcher] of this.#watchers) {
      if (folders.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of folders) if (!this.#watchers.has(folder)) this.#watch(folder);
    // A change between reading the file and watching its folder causes no event, so the content is checked once more.
    if (isNew && this.#watchers.size > 0) this.#lookSoon();
  }

  #watch(folder: string): void {
    const { onTrouble } = this.#options;
    try {
      const watcher = watchFolder(folder, { persistent: false }, (_event, name) => this.#onEvent(name));
      this.#watchers.set(folder, watcher);
      watcher.on('error', (error) => {
        this.stop();
        onTrouble(error);
      });
    } catch (error) {
      onTrouble(error as NodeJS.ErrnoException);
    }
  }

  stop(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    this.#quiet?.cancel();
    this.#quiet = null;
  }

  #onEvent(name: string | null): void {
    const { file } = this.#options;
    // The target of a symbolic link can have any name, so changes of other files in the folder also cause a check. Such changes do not
    // postpone a pending check, because a busy log file in the folder would postpone it forever.
    if (name !== null && name !== basename(file) && (this.#quiet !== null || !isLink(file))) return;
    this.#lookSoon();
  }

  #lookSoon(): void {
    this.#quiet?.cancel();
    this.#quiet = this.#options.clock.setTimeout(() => {
      this.#quiet = null;
      this.#look();
    }, QUIET_MS);
  }

  #look(): void {
    this.start();
    const hash = hashOf(this.#options.file);
    if (hash === null || hash === this.#hash) return;
    this.#hash = hash;
    this.#options.onChange();
  }
}

const foldersOf = (file: string): ReadonlySet<string> => {
  const folders = new Set([dirname(file)]);
  try {
    if (isLink(file)) folders.add(dirname(realpathSync(file)));
  } catch {
    // The symbolic link has no target at the moment. A change of the link itself is still seen.
  }
  return folders;
};

const isLink = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;

const hashOf = (file: string): string | null => {
  try {
    // Reads the file in the same way as config files are read: without the byte order mark added by some editors.
    return sha256Hex(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  } catch {
    return null;
  }
};

/** The watched files of a run: config.yml, and the policy files named in config.yml. */
export class WatchedFiles {
  readonly #watchOf: (file: string) => ConfigWatch;
  readonly #config: ConfigWatch;
  readonly #policies = new Map<string, ConfigWatch>();
  #isWatching = false;

  constructor(config: LoadedConfig, watchOf: (file: string) => ConfigWatch) {
    this.#watchOf = watchOf;
    this.#config = watchOf(config.path);
    this.#config.seen(config.hash);
  }

  /** Starts or stops watching. Called at the start of a run, and after config.yml has been applied. */
  watch(isWanted: boolean, policies: readonly string[]): void {
    if (!isWanted) return this.stop();
    this.#isWatching = true;
    for (const [file, watch] of this.#policies) {
      if (policies.includes(file)) continue;
      watch.stop();
      this.#policies.delete(file);
    }
    this.remember(policies);
    this.#start();
  }

  /** Records the content of policy files before they are read. A later change is reported once the files are watched. */
  remember(policies: readonly string[]): void {
    for (const file of policies) if (!this.#policies.has(file)) this.#policies.set(file, this.#watchOf(file));
  }

  /** Records the SHA-256 of config.yml after the file has been read. */
  seen(hash: string): void {
    this.#config.seen(hash);
  }

  /** Watches the policy files named in config.yml. A file with an error is watched as well, because its author will correct the error. */
  reads(policies: readonly string[]): void {
    if (!this.#isWatching) return;
    this.remember(policies);
    this.#start();
  }

  stop(): void {
    this.#isWatching = false;
    for (const watch of [this.#config, ...this.#policies.values()]) watch.stop();
    this.#policies.clear();
  }

  #start(): void {
    for (const watch of [this.#config, ...this.#policies.values()]) watch.start();
  }
}
