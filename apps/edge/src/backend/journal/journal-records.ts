// Records of the journal: records without a number, with usage summed up, and batches of numbered records.
import type { JournalRecord } from '@tunnel/contract';

type Usage = { -readonly [K in keyof UsageRecord]: UsageRecord[K] };
export type UsageRecord = Extract<JournalRecord, { kind: 'usage' }>;

const DAY_MS = 86_400_000;

/**
 * Records without a number. The usage of a tunnel on a day is a single record, to which later usage is added. Records are ordered by
 * their first entry, so the same lines always produce the same records.
 */
export class PendingRecords {
  #records: JournalRecord[] = [];
  readonly #usage = new Map<string, Usage>();

  get size(): number {
    return this.#records.length;
  }

  add(record: JournalRecord): void {
    if (record.kind !== 'usage') {
      this.#records.push(record);
      return;
    }
    const key = `${record.tunnel_id} ${Math.floor(record.at / DAY_MS)}`;
    const sum = this.#usage.get(key);
    if (sum === undefined) {
      const first = { ...record };
      this.#usage.set(key, first);
      this.#records.push(first);
      return;
    }
    sum.requests += record.requests;
    sum.bytes += record.bytes;
    sum.at = Math.max(sum.at, record.at);
  }

  [Symbol.iterator](): IterableIterator<JournalRecord> {
    return this.#records.values();
  }

  /** Removes and returns all records without a number. */
  take(): JournalRecord[] {
    const records = this.#records;
    this.#records = [];
    this.#usage.clear();
    return records;
  }
}

/** Batch of numbered records, ready to be sent. The numbers never change, because the batch may have been sent already. */
export interface Batch {
  readonly journalId: string;
  readonly first: number;
  readonly records: readonly JournalRecord[];
}

export interface BatchBounds {
  readonly records: number;
  readonly bytes: number;
}

export const lastRecordNumber = ({ first, records }: Batch): number => first + records.length - 1;

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
    // The size is in characters. Characters beyond ASCII take up to three bytes, for which the platform's limit leaves room.
    const size = JSON.stringify(record).length + 1;
    if (batch.length >= bounds.records || bytes + size > bounds.bytes) close();
    batch.push(record);
    bytes += size;
  }
  close();
  return batches;
};

/** Returns the batches without the records up to number `last`, which the platform has stored. */
export const withoutStored = (batches: readonly Batch[], journalId: string, last: number): Batch[] =>
  batches.flatMap((batch) => {
    if (batch.journalId !== journalId || last < batch.first) return [batch];
    const records = batch.records.slice(last - batch.first + 1);
    return records.length === 0 ? [] : [{ journalId, first: last + 1, records }];
  });

/** Returns the records up to number `last` of a journal, which the platform has stored. */
export const onlyStored = (batches: readonly Batch[], journalId: string, last: number): Batch[] =>
  batches.flatMap((batch) => {
    if (batch.journalId !== journalId || last < batch.first) return [];
    return [{ ...batch, records: batch.records.slice(0, last - batch.first + 1) }];
  });
