// Records that the platform has stored, kept on disk for a while. A platform that was restored from a backup has lost its latest records,
// and gets them again from here, under the same numbers, so that each record is counted once.
import { appendFile, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { JournalRecord } from '@tunnel/contract';
import { SerialQueue, wholeLines } from '@tunnel/runtime';
import { batchIn, linesOfBatch, recordIn } from './journal-format.ts';
import type { Batch } from './journal-records.ts';

/** Maximum appends waiting for the disk. Further records are not kept: keeping them is less important than delivering the next. */
const WAITING_MAX = 64;
/** Lines read without a pause, so that reading a large file does not delay connections. */
const LINES_PER_TURN = 500;

export interface SentRecordsOptions {
  readonly folder: string;
  /** Maximum size of both files together. The older half is dropped as a whole. */
  readonly maxBytes: number;
}

/** Consecutive records of a journal. */
export interface FoundRecords {
  /** Number of the first record. */
  readonly first: number;
  readonly records: readonly JournalRecord[];
}

export class SentRecords {
  readonly #options: SentRecordsOptions;
  readonly #queue = new SerialQueue({ maxWaiting: WAITING_MAX, full: () => new Error('the disk is too slow') });
  /** Size of the current file. Null until the first append of this run. */
  #bytes: number | null = null;

  constructor(options: SentRecordsOptions) {
    this.#options = options;
  }

  /** Keeps stored records. Never rejects: without a working disk, the records are not kept. */
  async keep(batches: readonly Batch[]): Promise<void> {
    if (batches.length === 0) return;
    const text = batches.flatMap((batch) => [...linesOfBatch(batch)]).join('');
    await this.#queue.run(() => this.#append(text)).catch(() => {});
  }

  /** Resolves when all records are on disk, or the disk has failed. */
  settled(): Promise<void> {
    return this.#queue.settled();
  }

  /**
   * Finds the records of a journal with numbers from `first` to `last`. If some are missing, returns the records behind the last missing
   * one. Null if even the last record is missing.
   */
  async find(journalId: string, first: number, last: number): Promise<FoundRecords | null> {
    const byNumber = new Map<number, JournalRecord>();
    await this.#queue.settled();
    for (const path of [this.#older, this.#current]) {
      for await (const [id, number, record] of numberedIn(path)) {
        if (id === journalId && number >= first && number <= last) byNumber.set(number, record);
      }
    }
    let from = last + 1;
    while (from > first && byNumber.has(from - 1)) from -= 1;
    if (from > last) return null;
    const records = Array.from({ length: last - from + 1 }, (_, index) => byNumber.get(from + index));
    return { first: from, records: records.filter((record) => record !== undefined) };
  }

  async #append(text: string): Promise<void> {
    // The first append of a run begins with a line end, because the last line of a killed run may be incomplete.
    const isFirst = this.#bytes === null;
    this.#bytes ??= await sizeOf(this.#current);
    await appendFile(this.#current, isFirst && this.#bytes > 0 ? `\n${text}` : text, { mode: 0o600 });
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes <= this.#options.maxBytes / 2) return;
    await rename(this.#current, this.#older);
    this.#bytes = 0;
  }

  get #current(): string {
    return join(this.#options.folder, 'sent.jsonl');
  }

  get #older(): string {
    return join(this.#options.folder, 'sent-earlier.jsonl');
  }
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

/** Yields the records of a file with their journal id and number. Incomplete batches are read as far as possible. */
async function* numberedIn(path: string): AsyncGenerator<readonly [id: string, number: number, record: JournalRecord]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  let batch: { readonly id: string; number: number; left: number } | null = null;
  let lines = 0;
  for (const line of wholeLines(text)) {
    lines += 1;
    if (lines % LINES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    const head = batchIn(line);
    if (head !== null) {
      batch = { id: head.journal_id, number: head.first, left: head.records };
      continue;
    }
    const record = batch === null || batch.left === 0 ? null : recordIn(line);
    if (batch === null || record === null) batch = null;
    else {
      yield [batch.id, batch.number, record];
      batch.number += 1;
      batch.left -= 1;
    }
  }
}
