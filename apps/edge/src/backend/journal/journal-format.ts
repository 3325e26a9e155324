// Text format of the journal file: a head, numbered batches, then a record per line, mixed with notes about acknowledged records.
import { type JournalRecord, journalRecord } from '@tunnel/contract';
import { lineOf, wholeLines } from '@tunnel/runtime';
import * as z from 'zod';
import { type Batch, PendingRecords, withoutStored } from './journal-records.ts';

export interface JournalState {
  readonly journalId: string;
  /** Number that the next numbered record of the usage journal gets. */
  readonly next: number;
  readonly batches: readonly Batch[];
  readonly pending: Iterable<JournalRecord>;
}

export interface RecoveredJournal extends JournalState {
  readonly pending: PendingRecords;
  /** Number of unreadable lines in the journal file. An incomplete last line is not counted. */
  readonly unreadable: number;
}

const number = z.int().min(1);
const head = z.object({ kind: z.literal('journal'), journal_id: z.string().min(1), next: number });
const batchLine = z.object({ kind: z.literal('batch'), journal_id: z.string().min(1), first: number, records: number });
const note = z.discriminatedUnion('kind', [
  batchLine,
  z.object({ kind: z.literal('acknowledged'), journal_id: z.string().min(1), last: z.int().min(0) }),
]);
const line = z.union([note, journalRecord]);

export const acknowledgedLine = (journalId: string, last: number): string =>
  lineOf({ kind: 'acknowledged', journal_id: journalId, last });

export function* linesOf({ journalId, next, batches, pending }: JournalState): Generator<string> {
  yield lineOf({ kind: 'journal', journal_id: journalId, next });
  for (const batch of batches) yield* linesOfBatch(batch);
  for (const record of pending) yield lineOf(record);
}

export function* linesOfBatch({ journalId, first, records }: Batch): Generator<string> {
  yield lineOf({ kind: 'batch', journal_id: journalId, first, records: records.length });
  for (const record of records) yield lineOf(record);
}

/** Parses the first line of a batch. Null for any other line. */
export const batchIn = (text: string): z.infer<typeof batchLine> | null =>
  batchLine.safeParse(jsonOf(text)).data ?? null;

/** Parses the line of a record. Null for any other line. */
export const recordIn = (text: string): JournalRecord | null => journalRecord.safeParse(jsonOf(text)).data ?? null;

/** Parses the text of a journal file. Returns null if the text does not start like a journal. */
export const readJournal = (text: string): RecoveredJournal | null => {
  const [first = '', ...lines] = wholeLines(text);
  const start = head.safeParse(jsonOf(first));
  if (!start.success) return null;
  const pending = new PendingRecords();
  const { journal_id: journalId } = start.data;
  let { next } = start.data;
  let batches: Batch[] = [];
  let missing = 0;
  let unreadable = 0;
  let open: JournalRecord[] = [];
  for (const each of lines) {
    const parsed = line.safeParse(jsonOf(each));
    if (!parsed.success) unreadable += 1;
    else if (parsed.data.kind === 'batch') {
      open = [];
      missing = parsed.data.records;
      batches.push({ journalId: parsed.data.journal_id, first: parsed.data.first, records: open });
    } else if (parsed.data.kind === 'acknowledged') {
      const { journal_id, last } = parsed.data;
      batches = withoutStored(batches, journal_id, last);
      // Another edge has sent records under the same journal id; numbering continues after these records.
      if (journal_id === journalId && last >= next) next = last + 1;
    } else if (missing > 0) {
      open.push(parsed.data);
      missing -= 1;
    } else pending.add(parsed.data);
  }
  return { journalId, next, batches, pending, unreadable };
};

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/**
 * Creates the missing ends of tunnels that were open when the last run ended: the tunnels closed with the run, but the platform was not
 * notified.
 */
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
