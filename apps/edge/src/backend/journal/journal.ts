// What happened on this edge and the platform does not know yet: on disk at once, numbered when it is about to be sent.
//
// One file holds everything: batches that have numbers, and behind them records that have none. Compaction writes a new file
// and removes the old one. When the disk takes nothing, all goes on in memory under another journal id: the numbers of the
// file stay with what is in the file, so that the next run can send that once more without its being counted twice.
import type { JournalRecord } from '@tunnel/contract';
import type { Logger } from '@tunnel/runtime';
import { JournalFile, recoverJournal, removeFound, syncFolder } from './journal-file.ts';
import { acknowledgedLine, endsOfLastRun, linesOf, textOf } from './journal-format.ts';
import {
  type Batch,
  type BatchBounds,
  lastOf,
  numberRecords,
  PendingRecords,
  withoutStored,
} from './journal-records.ts';

export interface JournalOptions {
  readonly folder: string;
  readonly logger: Logger;
  readonly newId: () => string;
  readonly batch: BatchBounds;
  /** Lines behind the last compaction. */
  readonly tailBytes: number;
}

export class Journal {
  readonly #options: JournalOptions;
  #journalId: string;
  #next = 1;
  #batches: Batch[] = [];
  #pending = new PendingRecords();
  #sequence = 0;
  /** null: the disk takes nothing. */
  #file: JournalFile | null = null;
  #isLost = false;
  #compactedBytes = 0;
  /** The size of the file when numbers were given to what is in it; null: nothing is being numbered. */
  #sealedBytes: number | null = null;
  /** Lines that came while the next file was being written. */
  #meanwhile: string[] | null = null;
  #working: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#journalId = options.newId();
  }

  /** Records that the platform has not acknowledged. */
  get size(): number {
    return this.#batches.reduce((sum, { records }) => sum + records.length, this.#pending.size);
  }

  /** Never rejects: an edge without a disk goes on. */
  async start(): Promise<void> {
    const { folder, logger } = this.#options;
    try {
      const { journal, files } = await recoverJournal(folder, logger);
      if (journal !== null) {
        this.#journalId = journal.journalId;
        this.#next = journal.next;
        this.#batches = [...journal.batches];
        this.#pending = journal.pending;
        const ends = endsOfLastRun(journal);
        // By itself and first: whatever the disk does now, the same lines get the same numbers.
        this.#number();
        for (const end of ends) this.#pending.add(end);
      }
      this.#sequence = files[0]?.sequence ?? 0;
      await this.#writeFile();
      for (const file of files) await removeFound(folder, file).catch(() => undefined);
    } catch (error) {
      this.#loseDisk(error);
    }
  }

  append(records: readonly JournalRecord[]): void {
    if (records.length === 0) return;
    const text = records.map(textOf).join('');
    // First, so that what the disk does not take is not taken for what is on it.
    this.#write(text);
    for (const record of records) this.#pending.add(record);
    const file = this.#file;
    if (file === null || this.#meanwhile !== null || this.#isClosed) return;
    if (file.bytes - this.#compactedBytes > this.#options.tailBytes) void this.#inTurn(() => this.#compact());
  }

  /** Gives numbers to all that has none; on disk before it returns, as far as there is a disk. */
  seal(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#pending.size === 0 && this.#file !== null) return;
      await this.#compact(() => this.#number());
    });
  }

  /** The next one to be sent. */
  get batch(): Batch | null {
    return this.#batches[0] ?? null;
  }

  /** The platform has stored everything up to `last`. */
  acknowledged(journalId: string, last: number): void {
    this.#write(acknowledgedLine(journalId, last));
    this.#batches = withoutStored(this.#batches, journalId, last);
    // Somebody else wrote under our id: our next numbers must not be taken for his.
    if (journalId === this.#journalId && last >= this.#next) this.#next = last + 1;
  }

  /** The platform knows less of this journal than we were told: what is left goes under a new id, from the beginning. */
  renumber(journalId: string): Promise<void> {
    return this.#inTurn(() =>
      this.#compact(() => {
        const meant = this.#batches.filter((batch) => batch.journalId === journalId);
        const others = this.#batches.filter((batch) => batch.journalId !== journalId);
        const id = this.#options.newId();
        const records = meant.flatMap((batch) => batch.records);
        const renumbered = numberRecords(id, 1, records, this.#options.batch);
        this.#batches = [...renumbered, ...others];
        if (this.#journalId !== journalId) return;
        this.#journalId = id;
        this.#next = records.length + 1;
      }),
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#working;
    this.#file?.close();
    this.#file = null;
  }

  #number(): void {
    const batches = numberRecords(this.#journalId, this.#next, this.#pending.take(), this.#options.batch);
    this.#batches.push(...batches);
    const last = batches.at(-1);
    if (last !== undefined) this.#next = lastOf(last) + 1;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#working.then(() => (this.#isClosed ? undefined : work()));
    this.#working = done.catch(() => undefined);
    return done;
  }

  // ---- the disk ----

  #write(text: string): void {
    this.#meanwhile?.push(text);
    try {
      this.#file?.append(text);
    } catch (error) {
      this.#loseDisk(error);
    }
  }

  /** What `change` makes is in the new file, or the disk is lost. Without one the old file serves on when there is no new one. */
  async #compact(change?: () => void): Promise<void> {
    this.#sealedBytes = change === undefined ? null : (this.#file?.bytes ?? null);
    change?.();
    try {
      await this.#writeFile();
    } catch (error) {
      if (this.#file !== null && change !== undefined) this.#loseDisk(error);
      this.#compactedBytes = this.#file?.bytes ?? 0;
    } finally {
      this.#sealedBytes = null;
    }
  }

  async #writeFile(): Promise<void> {
    const { folder, logger } = this.#options;
    const before = this.#file;
    // A copy: sums go on growing while this is written.
    const pending = [...this.#pending].map((record) => ({ ...record }));
    const state = { journalId: this.#journalId, next: this.#next, batches: [...this.#batches], pending };
    this.#meanwhile = [];
    try {
      const file = await JournalFile.prepare(folder, this.#sequence + 1, linesOf(state));
      this.#take(file, before);
    } finally {
      this.#meanwhile = null;
    }
    await syncFolder(folder);
    if (this.#isLost) logger.info({ folder }, 'the journal is written to disk again');
    this.#isLost = false;
  }

  /** In one turn: each line is in the old file, or in the new one. */
  #take(file: JournalFile, before: JournalFile | null): void {
    try {
      if (this.#file !== before) throw new Error('the disk was lost meanwhile, and with it the numbers in this file');
      this.#compactedBytes = file.bytes;
      file.append((this.#meanwhile ?? []).join(''));
      file.publish();
    } catch (error) {
      file.discard();
      throw error;
    }
    this.#file = file;
    this.#sequence = file.sequence;
    before?.remove();
  }

  /** What is in the file keeps its id and its numbers, which the next run would give it, too. */
  #loseDisk(error: unknown): void {
    const { folder, logger, newId } = this.#options;
    const file = this.#file;
    this.#file = null;
    if (file !== null && this.#sealedBytes === null) this.#number();
    // The lines behind have come after the numbers were given.
    if (file !== null && this.#sealedBytes !== null) file.cutTo(this.#sealedBytes);
    file?.close();
    this.#journalId = newId();
    this.#next = 1;
    if (this.#isLost) return;
    this.#isLost = true;
    const reason = error instanceof Error ? error.message : String(error);
    logger.error({ folder, reason }, 'the journal cannot be written: usage is kept in memory until the disk is back');
  }
}
