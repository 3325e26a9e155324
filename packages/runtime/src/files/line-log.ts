// Append-only state files: one JSON record per line. The file is written completely once, then grows by a line per change, and is rewritten
// when the changes exceed a limit. A crash can cut off the last line, which readers ignore.
import { type FileHandle, open, rename, rm, unlink } from 'node:fs/promises';
import { ASIDE, readBounded } from './atomic-file.ts';

// ---- lines ----

export type LineRecord = Readonly<Record<string, unknown>>;

export const lineOf = (record: object): string => `${JSON.stringify(record)}\n`;

/** Yields the complete lines of a text without line ends. Text after the last line end was cut off by a crash. */
export function* wholeLines(text: string): Generator<string> {
  let from = 0;
  for (let to = text.indexOf('\n'); to !== -1; to = text.indexOf('\n', from)) {
    yield text.slice(from, to);
    from = to + 1;
  }
}

/** Yields the records after the first line, which identifies the kind of file. Throws at the first line that is not a JSON object. */
export function* recordsIn(text: string, isHead: (first: LineRecord) => boolean): Generator<LineRecord> {
  let hasHead = false;
  for (const line of wholeLines(text)) {
    const record: unknown = JSON.parse(line);
    if (typeof record !== 'object' || record === null) throw new Error('the file has a line without an object');
    if (hasHead) yield record as LineRecord;
    else if (!isHead(record as LineRecord)) throw new Error(NOT_OURS);
    hasHead = true;
  }
  if (!hasHead) throw new Error(NOT_OURS);
}

const NOT_OURS = 'the file does not have the expected header';

/** Characters per write, so that writing a large file does not delay connections. */
const PIECE_CHARS = 64 * 1024;

function* piecesOf(lines: Iterable<string>): Generator<string> {
  let piece = '';
  for (const line of lines) {
    piece += line;
    if (piece.length < PIECE_CHARS) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

// ---- the file ----

/** An append-only file, prepared under a temporary name and published by a rename. Every append is written completely or not at all. */
export class GrowingFile {
  readonly #path: string;
  readonly #handle: FileHandle;
  #bytes = 0;

  private constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  /**
   * Writes the first lines to the temporary file. `flush` waits until they are on disk. The caller must be the only writer of `path`; a
   * leftover of a killed process is replaced.
   */
  static async prepare(
    path: string,
    lines: Iterable<string>,
    { flush }: { readonly flush: boolean },
  ): Promise<GrowingFile> {
    const aside = path + ASIDE;
    await rm(aside, { force: true });
    const handle = await open(aside, 'ax', 0o600);
    const file = new GrowingFile(path, handle);
    try {
      for (const piece of piecesOf(lines)) await file.append(piece);
      if (flush) await handle.sync();
      return file;
    } catch (error) {
      await file.discard();
      throw error;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Replaces the log file at `path` with the prepared temporary file. */
  async publish(): Promise<void> {
    await rename(this.#path + ASIDE, this.#path);
  }

  /** Appends without a flush: lines survive the end of the process, but not a power failure. */
  async append(text: string): Promise<void> {
    const chunk = Buffer.from(text);
    try {
      await this.#handle.writeFile(chunk);
    } catch (error) {
      await this.cutTo(this.#bytes);
      throw error;
    }
    this.#bytes += chunk.length;
  }

  /** Truncates the log file to `bytes`, if the disk allows it. */
  async cutTo(bytes: number): Promise<void> {
    try {
      await this.#handle.truncate(bytes);
      this.#bytes = bytes;
    } catch {
      // The disk rejects even a truncation. Readers of the log ignore a partial line.
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** Removes the published log file after its replacement. */
  async remove(): Promise<void> {
    await this.#leave(this.#path);
  }

  /** Removes a temporary log file that was never published. */
  async discard(): Promise<void> {
    await this.#leave(this.#path + ASIDE);
  }

  async #leave(path: string): Promise<void> {
    await this.close();
    // A file that cannot be removed does no harm: its owner finds it at the next start.
    await unlink(path).catch(() => {});
  }
}

// ---- the log ----

export interface LineLogOptions {
  readonly path: string;
  /** Maximum size of the log file. A larger file is not read. */
  readonly maxBytes: number;
  /** Maximum characters of changes waiting to be written. Beyond it the log file is rewritten instead. */
  readonly queueChars: number;
  /** Maximum characters of changes in the file. Beyond it the file is rewritten. */
  readonly tailChars: number;
  /** Returns the current state, starting with the line that identifies the kind of file. */
  readonly lines: () => Iterable<string>;
  /** Called at the first failed write, and not again until a write succeeds. */
  readonly onFailed: (reason: string) => void;
}

/**
 * Keeps the current state on disk for the next run. Changes are written in the background, one write at a time, without a flush. A failed
 * write loses nothing: the next change rewrites the file. A line can be written twice, so records must be idempotent.
 */
export class LineLog {
  readonly #options: LineLogOptions;
  #queue = '';
  #tailChars = 0;
  #file: GrowingFile | null = null;
  /** True if the file on disk is of an earlier run or lacks changes. Then no lines may be appended. */
  #isStale = true;
  #isChanged = false;
  #hasFailed = false;
  #writing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: LineLogOptions) {
    this.#options = options;
  }

  /** Returns the text of the last run, or null if there is no file. Rejects if it cannot be read. */
  read(): Promise<string | null> {
    return readBounded(this.#options.path, this.#options.maxBytes);
  }

  append(lines: string): void {
    if (this.#isClosed) return;
    this.#queue += lines;
    if (this.#queue.length > this.#options.queueChars) {
      this.#queue = lines;
      this.#isStale = true;
    }
    this.#writeOn();
  }

  /** Rewrites the whole state to the log file, after changes in many places. */
  rewrite(): void {
    if (this.#isClosed) return;
    this.#queue = '';
    this.#isStale = true;
    this.#writeOn();
  }

  /** Resolves when everything is written or cannot be written. Later changes are ignored. */
  async close(): Promise<void> {
    if (this.#hasFailed) this.rewrite();
    this.#isClosed = true;
    await this.#writing;
    await this.#file?.close();
    this.#file = null;
  }

  #writeOn(): void {
    this.#isChanged = true;
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    // Waits until all changes of the current event loop turn are queued, to write them together.
    await Promise.resolve();
    while (this.#isChanged) {
      // A change during a failing write triggers another write of the log.
      this.#isChanged = false;
      await this.#writeChanges();
    }
    this.#writing = null;
  }

  async #writeChanges(): Promise<void> {
    try {
      while (this.#isStale || this.#queue !== '') {
        if (this.#isStale || this.#tailChars > this.#options.tailChars) await this.#writeWhole();
        // More changes arrived during the write than the queue holds, so its lines would follow a gap.
        if (this.#isStale) continue;
        const text = this.#queue;
        this.#queue = '';
        this.#tailChars += text.length;
        if (text !== '') await this.#file?.append(text);
        this.#hasFailed = false;
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Changes made while the whole state is written are also queued, so none are lost. */
  async #writeWhole(): Promise<void> {
    const { path, lines } = this.#options;
    this.#isStale = false;
    const file = await GrowingFile.prepare(path, lines(), { flush: false });
    try {
      await file.publish();
    } catch (error) {
      await file.discard();
      throw error;
    }
    const before = this.#file;
    this.#file = file;
    this.#tailChars = 0;
    await before?.close();
  }

  /** After a failed write, the next change tries again and then writes the whole state. */
  #failed(error: unknown): void {
    this.#isStale = true;
    this.#queue = '';
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#options.onFailed(error instanceof Error ? error.message : String(error));
  }
}
