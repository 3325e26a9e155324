// The files of the journal: each is written beside its place and published in one step, then only appended to; and recovery of the files that the last run left.
import { mkdir, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ASIDE, type Logger, readBounded } from '@tunnel/runtime';
import { type RecoveredJournal, readJournal } from './journal-format.ts';

const NAME = /^journal-(\d{1,15})\.jsonl(\.unreadable)?$/;
const UNREADABLE = '.unreadable';
/** Node.js has no strings of more characters. */
const READ_MAX_BYTES = 500_000_000;

export const journalPath = (folder: string, sequence: number): string =>
  join(folder, `journal-${String(sequence).padStart(12, '0')}.jsonl`);

export interface FoundFile {
  readonly sequence: number;
  readonly name: string;
}

export interface Recovery {
  /** null: there was none. */
  readonly journal: RecoveredJournal | null;
  /** To be removed once the next file is in its place. */
  readonly files: readonly FoundFile[];
  /** The highest number of a file in the folder. The next file has a higher one, so that it replaces none. */
  readonly sequence: number;
}

/**
 * The newest file that can be read. One that cannot is set aside, for a person to look at: in its place it would be taken for the newest file at every start, and
 * the usage in the files of later runs would be lost.
 */
export const recoverJournal = async (folder: string, logger: Logger): Promise<Recovery> => {
  const found = await findJournals(folder);
  const sequence = found[0]?.sequence ?? 0;
  const files = found.filter(({ name }) => !name.endsWith(UNREADABLE));
  for (const file of [...files]) {
    const { journal, reason } = await readFound(join(folder, file.name));
    if (journal !== null) {
      const { unreadable } = journal;
      if (unreadable > 0) logger.error({ file: file.name, lines: unreadable }, 'journal has unreadable lines');
      return { journal, files, sequence };
    }
    logger.error({ file: file.name, reason }, 'cannot read the journal; the file was moved aside');
    await rename(join(folder, file.name), join(folder, file.name + UNREADABLE));
    files.splice(files.indexOf(file), 1);
  }
  return { journal: null, files, sequence };
};

interface ReadFile {
  readonly journal: RecoveredJournal | null;
  readonly reason?: string;
}

const readFound = async (path: string): Promise<ReadFile> => {
  try {
    const text = await readBounded(path, READ_MAX_BYTES);
    if (text === null) return { journal: null, reason: 'the file is a dangling symbolic link' };
    const journal = readJournal(text);
    return journal === null ? { journal, reason: 'the file does not start like a journal' } : { journal };
  } catch (error) {
    return { journal: null, reason: (error as Error).message };
  }
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
