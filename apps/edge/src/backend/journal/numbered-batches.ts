// Batches of numbered records, ready to be sent: what may have been sent keeps its numbers for ever.
import type { JournalRecord } from '@tunnel/contract';

export interface Batch {
  readonly journalId: string;
  readonly first: number;
  readonly records: readonly JournalRecord[];
}

export interface BatchBounds {
  readonly records: number;
  readonly bytes: number;
}

export const lastOf = ({ first, records }: Batch): number => first + records.length - 1;

export const numberRecords = (
  journalId: string,
  first: number,
  records: readonly JournalRecord[],
  bounds: BatchBounds,
): Batch[] => {
  const batches: Batch[] = [];
  let number = first;
  let batch: JournalRecord[] = [];
  let bytes = 0;
  const close = (): void => {
    if (batch.length > 0) batches.push({ journalId, first: number, records: batch });
    number += batch.length;
    batch = [];
    bytes = 0;
  };
  for (const record of records) {
    // In characters; what is beyond ASCII takes up to three times that, which the platform's bound leaves room for.
    const size = JSON.stringify(record).length + 1;
    if (batch.length >= bounds.records || bytes + size > bounds.bytes) close();
    batch.push(record);
    bytes += size;
  }
  close();
  return batches;
};

/** Without those up to `last`, which the platform has. */
export const withoutStored = (batches: readonly Batch[], journalId: string, last: number): Batch[] =>
  batches.flatMap((batch) => {
    if (batch.journalId !== journalId || last < batch.first) return [batch];
    const records = batch.records.slice(last - batch.first + 1);
    return records.length === 0 ? [] : [{ journalId, first: last + 1, records }];
  });
