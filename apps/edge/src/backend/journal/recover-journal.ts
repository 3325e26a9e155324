// What the last run left behind: the newest file that can be read, and the ends of tunnels which that run could not write.
import type { JournalRecord } from '@tunnel/contract';
import type { Logger } from '@tunnel/runtime';
import { type FoundFile, findJournals, readFound, setAside } from './journal-file.ts';
import { type RecoveredJournal, readJournal } from './journal-lines.ts';

export interface Recovery {
  /** null: there was none. */
  readonly journal: RecoveredJournal | null;
  /** To be removed once the next file is in its place. */
  readonly files: readonly FoundFile[];
}

export const recoverJournal = async (folder: string, logger: Logger): Promise<Recovery> => {
  const files = await findJournals(folder);
  for (const file of [...files]) {
    const journal = readJournal(await readFound(folder, file));
    if (journal !== null) {
      const { unreadable } = journal;
      if (unreadable > 0) logger.error({ file: file.name, lines: unreadable }, 'the journal has unreadable lines');
      return { journal, files };
    }
    logger.error({ file: file.name }, 'the journal cannot be read; it is set aside');
    await setAside(folder, file);
    files.splice(files.indexOf(file), 1);
  }
  return { journal: null, files };
};

/** Tunnels that were open when the last run ended, as far as the platform was not told of them: they ended with it. */
export const endsOfLastRun = ({ batches, pending }: RecoveredJournal): JournalRecord[] => {
  const open = new Set<string>();
  let lastAt = 0;
  for (const record of [...batches.flatMap(({ records }) => records), ...pending]) {
    lastAt = Math.max(lastAt, record.at);
    if (record.kind === 'opened') open.add(record.tunnel_id);
    if (record.kind === 'closed') open.delete(record.tunnel_id);
  }
  return [...open].map((tunnel_id) => ({ kind: 'closed', tunnel_id, at: lastAt, abandoned: false }));
};
