// Files of the journal. A file is written under a temporary name, published atomically, and then only appended to. Also recovers the
// files of the last run.
import { mkdir, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ASIDE, type Logger, readBounded } from '@tunnel/runtime';
import { type RecoveredJournal, readJournal } from './journal-format.ts';

const NAME = /^journal-(\d{1,15})\.jsonl(\.unreadable)?$/;
const UNREADABLE = '.unreadable';
/** Maximum size of a readable journal file. Node.js does not support longer strings. */
const READ_MAX_BYTES = 500_000_000;

export const journalPath = (folder: string, sequence: number): string =>
  join(folder, `journal-${String(sequence).padStart(12, '0')}.jsonl`);

export interface FoundFile {
  readonly sequence: number;
  readonly name: string;
}

export interface Recovery {
  /** Recovered content of the newest readable file. Null if no such file exists. */
  readonly journal: RecoveredJournal | null;
  /** Earlier journal files, to be deleted once the next file is published. */
  readonly files: readonly FoundFile[];
  /** Highest sequence number of a file in the folder. The next file gets a higher number, so that no file is overwritten. */
  readonly sequence: number;
}

/**
 * Reads the newest readable journal file. An unreadable file is renamed, so that a person can inspect the file. Under its old name, the
 * file would count as the newest at every start, and the usage in the files of later runs would be lost.
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

/** Lists the journal files, newest first. Deletes unpublished files, and creates the folder if missing. */
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
