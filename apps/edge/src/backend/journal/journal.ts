// What happened on this edge and the platform does not know yet: on its way to the disk at once, numbered when it is about to be sent.
//
// One file holds everything: batches that have numbers, and behind them records that have none. Compaction writes a new file
// and removes the old one. When the disk takes nothing, all goes on in memory under another journal id: the numbers of the
// file stay with what is in the file, so that the next run can send that once more without its being counted twice.
import type { JournalRecord } from '@tunnel/contract';
import { GrowingFile, type Logger, SerialQueue, syncFolder } from '@tunnel/runtime';
import { journalPath, recoverJournal, removeFound } from './journal-file.ts';
import { acknowledgedLine, endsOfLastRun, linesOf } from './journal-format.ts';
import {
  type Batch,
  type BatchBounds,
  lastRecordNumber,
  numberRecords,
  PendingRecords,
  withoutStored,
} from './journal-records.ts';
import { WriteQueue } from './write-queue.ts';

export interface JournalOptions {
  readonly folder: string;
  readonly logger: Logger;
  readonly newId: () => string;
  readonly batch: BatchBounds;
  /** Lines behind the last compaction. */
  readonly tailBytes: number;
  /** Of what waits for the disk. */
  readonly queueBytes: number;
}

/** Changes of the whole file that can wait. One compaction and one delivery ask for them, so that a longer queue is a fault in the code. */
const TURNS_MAX = 8;

export class Journal {
  readonly #options: JournalOptions;
  #journalId: string;
  #next = 1;
  #batches: Batch[] = [];
  /** Without numbers: in the file, or in memory where there is none. */
  #pending = new PendingRecords();
  readonly #queue: WriteQueue;
  #timesFull = 0;
  #sequence = 0;
  /** null: the disk takes nothing. */
  #file: GrowingFile | null = null;
  #isLost = false;
  #compactedBytes = 0;
  /** The size of the file when numbers were given to what is in it; null: nothing is being numbered. */
  #sealedBytes: number | null = null;
  /** What went into the old file while the next one was being written. */
  #meanwhile: string[] | null = null;
  #isCompactionDue = false;
  /** Changes of the file as a whole, one after the other. */
  readonly #turns = new SerialQueue({ maxWaiting: TURNS_MAX, full: () => new Error('the journal is too far behind') });
  #isClosed = false;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#journalId = options.newId();
    this.#queue = new WriteQueue({
      maxBytes: options.queueBytes,
      write: (text, records) => this.#write(text, records),
      onFull: (bytes) => this.#onFull(bytes),
    });
  }

  /** Records that the platform has not acknowledged. */
  get size(): number {
    return this.#batches.reduce((sum, { records }) => sum + records.length, this.#pending.size + this.#queue.size);
  }

  /** Of what waits for the disk, and how often that became too much. Nothing is dropped; who opens tunnels should wait. */
  get waiting(): { readonly bytes: number; readonly isFull: boolean; readonly timesFull: number } {
    return { bytes: this.#queue.bytes, isFull: this.#queue.isFull, timesFull: this.#timesFull };
  }

  /** Never rejects: an edge without a disk goes on. */
  async start(): Promise<void> {
    const { folder, logger } = this.#options;
    try {
      const { journal, files, sequence } = await recoverJournal(folder, logger);
      this.#sequence = sequence;
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
      await this.#writeFile();
      for (const file of files) await removeFound(folder, file).catch(() => undefined);
    } catch (error) {
      await this.#loseDisk(error);
    } finally {
      this.#meanwhile = null;
      this.#goOn();
    }
  }

  /** On its way to the disk when this returns: one write is under way at a time, and the next one takes all that came meanwhile. */
  append(records: readonly JournalRecord[]): void {
    if (records.length === 0) return;
    this.#queue.add(records);
    // Nobody writes, and nobody is about to: memory keeps it.
    if (this.#file === null && this.#meanwhile === null) this.#goOn();
  }

  /** Settles when all that was appended before is in the file, or the disk is lost. */
  written(): Promise<void> {
    return this.#queue.written();
  }

  /** Gives numbers to all that has none; on disk before it returns, as far as there is a disk. */
  seal(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#queue.written();
      if (this.#pending.size === 0 && this.#file !== null) return;
      await this.#compact(() => this.#number());
    });
  }

  /** Where the disk was lost: writes everything to a file again, as soon as the disk takes it. Gives no numbers, so that it can be done while the platform is away. */
  async regain(): Promise<void> {
    if (this.#file === null) await this.#inTurn(() => this.#compact());
  }

  /** The next one to be sent. */
  get batch(): Batch | null {
    return this.#batches[0] ?? null;
  }

  /** The platform has stored everything up to `last`. */
  acknowledged(journalId: string, last: number): void {
    if (this.#file !== null) this.#queue.note(acknowledgedLine(journalId, last));
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
    // The last chance of what only memory has.
    await this.regain();
    this.#isClosed = true;
    await this.#turns.settled();
    await this.#queue.written();
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  #number(): void {
    const batches = numberRecords(this.#journalId, this.#next, this.#pending.take(), this.#options.batch);
    this.#batches.push(...batches);
    const last = batches.at(-1);
    if (last !== undefined) this.#next = lastRecordNumber(last) + 1;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    return this.#turns.run(async () => (this.#isClosed ? undefined : work()));
  }

  #onFull(bytes: number): void {
    this.#timesFull += 1;
    const { folder, logger } = this.#options;
    logger.error(
      { folder, bytes },
      'disk too slow for the journal; accounts cannot open tunnels until the disk catches up',
    );
  }

  // ---- the disk ----

  /** One write of the queue. What it wrote waits for its numbers from here on. */
  async #write(text: string, records: readonly JournalRecord[]): Promise<void> {
    try {
      await this.#file?.append(text);
    } catch (error) {
      return this.#loseDisk(error, records);
    }
    this.#meanwhile?.push(text);
    for (const record of records) this.#pending.add(record);
    this.#compactIfDue();
  }

  #compactIfDue(): void {
    const file = this.#file;
    if (file === null || this.#isCompactionDue || this.#isClosed) return;
    if (file.bytes - this.#compactedBytes <= this.#options.tailBytes) return;
    this.#isCompactionDue = true;
    void this.#inTurn(() => this.#compact());
  }

  /** What `change` makes is in the new file, or the disk is lost. Without one the old file serves on when there is no new one. */
  async #compact(change?: () => void): Promise<void> {
    // Only what is in the file gets numbers: the next run must come to the same ones.
    await this.#queue.pause();
    this.#sealedBytes = change === undefined ? null : (this.#file?.bytes ?? null);
    change?.();
    try {
      await this.#writeFile();
    } catch (error) {
      await this.#queue.pause();
      if (this.#file !== null && change !== undefined) await this.#loseDisk(error);
      this.#compactedBytes = this.#file?.bytes ?? 0;
    } finally {
      this.#sealedBytes = null;
      this.#meanwhile = null;
      this.#isCompactionDue = false;
      this.#goOn();
      // What came meanwhile may be too much again, and nothing else may come for hours.
      this.#compactIfDue();
    }
  }

  /** Where there is no file, memory takes what waits for one. */
  #goOn(): void {
    if (this.#file !== null) return this.#queue.resume();
    for (const record of this.#queue.take()) this.#pending.add(record);
  }

  /** The queue goes on into the old file while the new one is prepared, and stands still while the one takes the other's place. */
  async #writeFile(): Promise<void> {
    const { folder, logger } = this.#options;
    const before = this.#file;
    // A copy: sums go on growing while this is written.
    const pending = [...this.#pending].map((record) => ({ ...record }));
    const state = { journalId: this.#journalId, next: this.#next, batches: [...this.#batches], pending };
    this.#meanwhile = [];
    if (before !== null) this.#queue.resume();
    const file = await GrowingFile.prepare(journalPath(folder, this.#sequence + 1), linesOf(state), { flush: true });
    await this.#queue.pause();
    await this.#publish(file, before);
    await before?.remove();
    await syncFolder(folder);
    if (this.#isLost) logger.info({ folder }, 'journal writes to disk resumed');
    this.#isLost = false;
  }

  async #publish(file: GrowingFile, before: GrowingFile | null): Promise<void> {
    try {
      if (this.#file !== before)
        throw new Error('the disk was unavailable, and the record numbers in the file are outdated');
      const { bytes } = file;
      await file.append((this.#meanwhile ?? []).join(''));
      await file.publish();
      this.#compactedBytes = bytes;
    } catch (error) {
      await file.discard();
      throw error;
    }
    this.#file = file;
    this.#sequence += 1;
  }

  /** What is in the file keeps its id and its numbers, which the next run would give it, too; `late` is what it did not take. */
  async #loseDisk(error: unknown, late: readonly JournalRecord[] = []): Promise<void> {
    const { folder, logger, newId } = this.#options;
    const file = this.#file;
    const sealedBytes = this.#sealedBytes;
    this.#file = null;
    if (file !== null && sealedBytes === null) this.#number();
    this.#journalId = newId();
    this.#next = 1;
    // In this turn: what comes while the file is closed comes after it.
    for (const record of late) this.#pending.add(record);
    // The lines behind have come after the numbers were given.
    if (file !== null && sealedBytes !== null) await file.cutTo(sealedBytes);
    await file?.close();
    if (this.#isLost) return;
    this.#isLost = true;
    const reason = error instanceof Error ? error.message : String(error);
    logger.error({ folder, reason }, 'cannot write the journal; usage stays in memory until the disk works again');
  }
}
