// The files that a run goes by, as they are watched: config.yml, and the policies that it names.
import type { LoadedConfig } from './file.ts';
import type { ConfigWatch } from './watch.ts';

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

  /** It names these, which are read now. One that is not good is watched, too: it will be mended. */
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
