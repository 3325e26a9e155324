// What the journal's file has not taken yet. One write is under way at a time; what comes meanwhile is summed up, and goes with the
// next one, in order. So a slow disk makes writes larger, not slower to come by, and nobody waits for it.
import type { JournalRecord } from '@tunnel/contract';
import { lineOf } from '@tunnel/runtime';
import { PendingRecords } from './journal-records.ts';

export interface WriteQueueOptions {
  /** Over it the queue is full: whoever would make it longer has to wait. */
  readonly maxBytes: number;
  /** One write of all that waits. Never rejects. */
  readonly write: (text: string, records: readonly JournalRecord[]) => Promise<void>;
  /** Once each time it becomes full. */
  readonly onFull: (bytes: number) => void;
}

export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #records = new PendingRecords();
  /** Lines that are no records. */
  #notes = '';
  /** Of what waits and of what is being written; sums are taken to be as long as their first record. */
  #waitingBytes = 0;
  #writtenBytes = 0;
  #recordsInWrite = 0;
  #writing: Promise<void> | null = null;
  /** How often something was added, and how much of that is out of here: who waits compares the two. */
  #added = 0;
  #done = 0;
  readonly #waiters = new Set<() => void>();
  #isPaused = true;
  #isFull = false;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  /** Records that are not written yet. */
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
      // Usage that was added to a sum takes no room.
      if (this.#records.size > before) this.#waitingBytes += lineOf(record).length;
    }
    this.#added += 1;
    this.#look();
    this.#begin();
  }

  /** A line that is no record. */
  note(line: string): void {
    this.#notes += line;
    this.#waitingBytes += line.length;
    this.#added += 1;
    this.#begin();
  }

  /** Settles when all that is here now is written, or taken. */
  async written(): Promise<void> {
    const upTo = this.#added;
    while (this.#done < upTo) await new Promise<void>((resolve) => this.#waiters.add(resolve));
  }

  /** Settles when no write is under way; none begins before resume(). */
  async pause(): Promise<void> {
    this.#isPaused = true;
    await this.#writing;
  }

  resume(): void {
    this.#isPaused = false;
    this.#begin();
  }

  /** There is no file to write to: all that waits, for memory to keep. */
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
