// The files of the journal: each is written aside and put in its place in one step, then only appended to; and what the last run left.
// Appending is done without fsync, which survives the end of the process, and behind the event loop: no connection waits for a disk.
import { type FileHandle, mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@tunnel/runtime';
import { type RecoveredJournal, readJournal } from './journal-format.ts';

const NAME = /^journal-(\d{1,15})\.jsonl$/;
const ASIDE = '.new';
const UNREADABLE = '.unreadable';
/** Text that is written in one piece: a large journal must not hold up the connections. */
const PIECE_CHARS = 64 * 1024;

export class JournalFile {
  readonly sequence: number;
  readonly #path: string;
  readonly #handle: FileHandle;
  #bytes: number;

  private constructor(path: string, sequence: number, handle: FileHandle, bytes: number) {
    this.#path = path;
    this.sequence = sequence;
    this.#handle = handle;
    this.#bytes = bytes;
  }

  /** Complete and on the disk, but not in its place yet. */
  static async prepare(folder: string, sequence: number, lines: Iterable<string>): Promise<JournalFile> {
    const path = join(folder, `journal-${String(sequence).padStart(12, '0')}.jsonl`);
    const handle = await open(path + ASIDE, 'w', 0o600);
    let bytes = 0;
    try {
      for (const piece of piecesOf(lines)) {
        await handle.writeFile(piece);
        bytes += Buffer.byteLength(piece);
      }
      await handle.sync();
    } catch (error) {
      await handle.close();
      await unlink(path + ASIDE).catch(() => undefined);
      throw error;
    }
    await handle.close();
    return new JournalFile(path, sequence, await open(path + ASIDE, 'a'), bytes);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** From here on it is the journal. */
  async publish(): Promise<void> {
    await rename(this.#path + ASIDE, this.#path);
  }

  /** All of it or nothing: half a line would hide the one after it. */
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

  /** As it was at that size. */
  async cutTo(bytes: number): Promise<void> {
    try {
      await this.#handle.truncate(bytes);
      this.#bytes = bytes;
    } catch {
      // The disk takes nothing at all: what is there stays.
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** The next one has taken its place; one that cannot be removed is, at the next start. */
  async remove(): Promise<void> {
    await this.#leave(this.#path);
  }

  /** It never became the journal. */
  async discard(): Promise<void> {
    await this.#leave(this.#path + ASIDE);
  }

  async #leave(path: string): Promise<void> {
    await this.close();
    try {
      await unlink(path);
    } catch {
      // The newest file counts, whatever lies beside it.
    }
  }
}

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

export interface FoundFile {
  readonly sequence: number;
  readonly name: string;
}

export interface Recovery {
  /** null: there was none. */
  readonly journal: RecoveredJournal | null;
  /** To be removed once the next file is in its place. */
  readonly files: readonly FoundFile[];
}

/** The newest file that can be read; one that cannot is set aside, for a person to look at. */
export const recoverJournal = async (folder: string, logger: Logger): Promise<Recovery> => {
  const files = await findJournals(folder);
  for (const file of [...files]) {
    const journal = readJournal(await readFile(join(folder, file.name), 'utf8'));
    if (journal !== null) {
      const { unreadable } = journal;
      if (unreadable > 0) logger.error({ file: file.name, lines: unreadable }, 'the journal has unreadable lines');
      return { journal, files };
    }
    logger.error({ file: file.name }, 'the journal cannot be read; it is set aside');
    await rename(join(folder, file.name), join(folder, file.name + UNREADABLE));
    files.splice(files.indexOf(file), 1);
  }
  return { journal: null, files };
};

/** The newest first; what was left aside is removed. The folder is made when it is missing. */
const findJournals = async (folder: string): Promise<FoundFile[]> => {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const names = await readdir(folder);
  for (const name of names) if (name.endsWith(ASIDE)) await unlink(join(folder, name)).catch(() => undefined);
  return names
    .flatMap((name) => {
      const sequence = NAME.exec(name)?.[1];
      return sequence === undefined ? [] : [{ sequence: Number(sequence), name }];
    })
    .sort((a, b) => b.sequence - a.sequence);
};

export const removeFound = (folder: string, { name }: FoundFile): Promise<void> => unlink(join(folder, name));

/** The names in the folder, too, are on the disk. */
export const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};
