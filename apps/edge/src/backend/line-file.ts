// A file that says what is so, one fact a line: written whole at first, then a line for each change, and whole again when the changes are many.
// Written behind the event loop, one write at a time, without fsync: it is there for the end of the process, not of the machine.
import { appendFile, readFile, rename, stat, writeFile } from 'node:fs/promises';

export interface LineFileOptions {
  readonly path: string;
  /** More is not read. */
  readonly maxBytes: number;
  /** Changes that wait for the disk; with more the whole file says the same in fewer words. */
  readonly queueChars: number;
  /** Changes behind what was written whole. */
  readonly tailChars: number;
  /** All of it as it is now, in pieces that take no time. */
  readonly pieces: () => Iterable<string>;
  /** Once, until it works again. */
  readonly onFailed: (reason: string) => void;
}

export class LineFile {
  readonly #options: LineFileOptions;
  #queue = '';
  #tailChars = 0;
  /** The file on the disk is no beginning to append to: none of this run, or one that lacks something. */
  #isStale = true;
  #hasFailed = false;
  #writing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: LineFileOptions) {
    this.#options = options;
  }

  /** null: there is none. Throws what is wrong with it. */
  async read(): Promise<string | null> {
    const { path, maxBytes } = this.#options;
    try {
      const found = await stat(path);
      const { size } = found;
      // Whatever else lies there may keep us waiting for ever.
      if (!found.isFile()) throw new Error('it is no file');
      if (size > maxBytes) throw new Error(`it has ${size} bytes`);
      return await readFile(path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  append(text: string): void {
    if (this.#isClosed) return;
    this.#queue += text;
    if (this.#queue.length > this.#options.queueChars) {
      this.#queue = text;
      this.#isStale = true;
    }
    this.#writeOn();
  }

  /** What it says has changed as a whole. */
  rewrite(): void {
    if (this.#isClosed) return;
    this.#queue = '';
    this.#isStale = true;
    this.#writeOn();
  }

  /** Nothing is written afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writing;
  }

  #writeOn(): void {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null;
    });
  }

  async #write(): Promise<void> {
    // What comes within this turn goes along.
    await Promise.resolve();
    while (this.#isStale || this.#queue !== '') {
      try {
        if (this.#isStale || this.#tailChars > this.#options.tailChars) await this.#writeWhole();
        const text = this.#queue;
        this.#queue = '';
        this.#tailChars += text.length;
        if (text !== '') await appendFile(this.#options.path, text, { mode: 0o600 });
        this.#hasFailed = false;
      } catch (error) {
        this.#failed(error);
        return;
      }
    }
  }

  /** What changes meanwhile is in the queue, too: to say so twice changes nothing. */
  async #writeWhole(): Promise<void> {
    const { path, pieces } = this.#options;
    const aside = `${path}.new`;
    this.#isStale = false;
    await writeFile(aside, pieces(), { mode: 0o600 });
    await rename(aside, path);
    this.#tailChars = 0;
  }

  /** A disk that takes nothing is tried again with the next line, and then told everything. */
  #failed(error: unknown): void {
    this.#isStale = true;
    this.#queue = '';
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#options.onFailed(error instanceof Error ? error.message : String(error));
  }
}
