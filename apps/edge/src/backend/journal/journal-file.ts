// The files of the journal: each is written beside its place and published in one step, then only appended to; and recovery of the files that the last run left.
import { mkdir, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ASIDE, type Logger } from '@tunnel/runtime';
import { type RecoveredJournal, readJournal } from './journal-format.ts';

const NAME = /^journal-(\d{1,15})\.jsonl$/;
const UNREADABLE = '.unreadable';

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
