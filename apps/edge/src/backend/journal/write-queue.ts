// Queue of records for the journal's file. Only a single write is in progress at a time. Records that arrive meanwhile are summed up and
// go into the next write, in order. On a slow disk, writes become larger instead of more frequent, and no caller waits for a write.
import type { JournalRecord } from '@tunnel/contract';
import { lineOf } from '@tunnel/runtime';
import { PendingRecords } from './journal-records.ts';

export interface WriteQueueOptions {
  /** Size in bytes above which the queue is full. Callers should then add no records. */
  readonly maxBytes: number;
  /** Writes all queued lines to the journal file. Never rejects. */
  readonly write: (text: string, records: readonly JournalRecord[]) => Promise<void>;
  /** Called each time the write queue becomes full. */
  readonly onFull: (bytes: number) => void;
}

export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #records = new PendingRecords();
  /** Queued lines other than records, such as notes about acknowledged records. */
  #notes = '';
  /** Bytes in the queue, and (`#writtenBytes`) bytes in the current write. A sum of usage counts with the length of its first record. */
  #waitingBytes = 0;
  #writtenBytes = 0;
  #recordsInWrite = 0;
  #writing: Promise<void> | null = null;
  /** Number of additions so far, and (`#done`) the number of additions no longer in the queue. written() compares the two numbers. */
  #added = 0;
  #done = 0;
  readonly #waiters = new Set<() => void>();
  #isPaused = true;
  #isFull = false;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  /** Number of records that are not on disk yet. */
  get size(): number {
    return this.#records.size + this.#recordsInWrite;
  }

  get bytes(): number {
    return this.#waitingBytes + this.#writtenBytes;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  add(records: readonly JournalRecord[]): void {
    for (const record of records) {
      const before = this.#records.size;
      this.#records.add(record);
      // Usage added to an existing sum takes no additional space in the queue.
      if (this.#records.size > before) this.#waitingBytes += lineOf(record).length;
    }
    this.#added += 1;
    this.#look();
    this.#begin();
  }

  /** Queues a line that is not a record. */
  note(line: string): void {
    this.#notes += line;
    this.#waitingBytes += line.length;
    this.#added += 1;
    this.#begin();
  }

  /** Resolves when all current content of the queue was written or taken. */
  async written(): Promise<void> {
    const upTo = this.#added;
    while (this.#done < upTo) await new Promise<void>((resolve) => this.#waiters.add(resolve));
  }

  /** Resolves when no write is in progress. No write starts before resume() is called. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    await this.#writing;
  }

  resume(): void {
    this.#isPaused = false;
    this.#begin();
  }

  /** Removes and returns all queued records. Called without a file, to keep the records in memory. */
  take(): readonly JournalRecord[] {
    this.#notes = '';
    this.#waitingBytes = 0;
    this.#look();
    this.#settle(this.#added);
    return this.#records.take();
  }

  #begin(): void {
    if (this.#isPaused || this.#writing !== null || (this.#records.size === 0 && this.#notes === '')) return;
    const records = this.#records.take();
    const text = this.#notes + records.map(lineOf).join('');
    this.#notes = '';
    this.#writtenBytes = this.#waitingBytes;
    this.#waitingBytes = 0;
    this.#recordsInWrite = records.length;
    const upTo = this.#added;
    this.#writing = this.#options.write(text, records).finally(() => {
      this.#writing = null;
      this.#writtenBytes = 0;
      this.#recordsInWrite = 0;
      this.#settle(upTo);
      this.#look();
      this.#begin();
    });
  }

  #settle(upTo: number): void {
    this.#done = Math.max(this.#done, upTo);
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }

  #look(): void {
    const wasFull = this.#isFull;
    this.#isFull = this.bytes > this.#options.maxBytes;
    if (this.#isFull && !wasFull) this.#options.onFull(this.bytes);
  }
}
