// Tells when the content of a file has changed, and keeps the watches of a run: config.yml, and the policies that it names.
import { type FSWatcher, lstatSync, readFileSync, realpathSync, watch as watchFolder } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type Clock, sha256Hex, type Timer } from '@tunnel/runtime';
import type { LoadedConfig } from './file.ts';

/** An editor's several writes are one change. */
const QUIET_MS = 300;

export interface ConfigWatchOptions {
  readonly file: string;
  readonly clock: Pick<Clock, 'setTimeout'>;
  readonly onChange: () => void;
  /** It cannot be watched, or no more. */
  readonly onTrouble: (error: NodeJS.ErrnoException) => void;
}

/** Watches the folder, not the file: editors write a new one and rename it. For a link: its own folder, and the folder of the file that it leads to. */
export class ConfigWatch {
  readonly #options: ConfigWatchOptions;
  /** By folder. */
  readonly #watchers = new Map<string, FSWatcher>();
  #quiet: Timer | null = null;
  /** Of what was last told of, or there at the start; a file that is gone is no content. */
  #hash: string | null;

  constructor(options: ConfigWatchOptions) {
    this.#options = options;
    this.#hash = hashOf(options.file);
  }

  /** Somebody else has just read the file, and this is the SHA-256 of what it says. */
  seen(hash: string): void {
    this.#hash = hash;
  }

  start(): void {
    const isNew = this.#watchers.size === 0;
    const folders = foldersOf(this.#options.file);
    // The link may lead elsewhere by now.
    for (const [folder, watcher] of this.#watchers) {
      if (folders.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of folders) if (!this.#watchers.has(folder)) this.#watch(folder);
    // A change between reading the file and watching its folder causes no event.
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
    // A link may lead anywhere: what changes beside it counts too, and must not put off the look for ever, as a log in this folder would.
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
    // It leads nowhere just now: a change of the link itself is seen.
  }
  return folders;
};

const isLink = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;

const hashOf = (file: string): string | null => {
  try {
    // As config files are read: without the mark that some editors begin with.
    return sha256Hex(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  } catch {
    return null;
  }
};

/** The files that a run goes by: config.yml, and the policies that it names. */
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

  /** The run begins, or has carried out what config.yml says. */
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

  /** Before they are read: what changes from then on is told when they are watched. */
  remember(policies: readonly string[]): void {
    for (const file of policies) if (!this.#policies.has(file)) this.#policies.set(file, this.#watchOf(file));
  }

  /** config.yml has just been read: the SHA-256 of what it says. */
  seen(hash: string): void {
    this.#config.seen(hash);
  }

  /** Watches the policy files that config.yml names. A file with a mistake is watched as well, because its author will correct it. */
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
