// Journal of events on the edge that the platform has not stored yet. Records are written to disk at once, and numbered before they are
// sent.
//
// A single file contains all records: first numbered batches, then records without a number. Compaction writes a new file and deletes the
// old file. If the disk fails, the journal continues in memory under another journal id. Records in the file keep their numbers, so that
// the next run can send the records again without being counted twice.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { JournalRecord } from '@tunnel/contract';
import { GrowingFile, type Logger, SerialQueue, syncFolder } from '@tunnel/runtime';
import { journalPath, recoverJournal, removeFound } from './journal-file.ts';
import { acknowledgedLine, endsOfLastRun, linesOf } from './journal-format.ts';
import {
  type Batch,
  type BatchBounds,
  lastRecordNumber,
  numberRecords,
  onlyStored,
  PendingRecords,
  withoutStored,
} from './journal-records.ts';
import { SentRecords } from './sent-records.ts';
import { WriteQueue } from './write-queue.ts';

export interface JournalOptions {
  readonly folder: string;
  readonly logger: Logger;
  readonly newId: () => string;
  readonly batch: BatchBounds;
  /** Maximum bytes appended since the last compaction. Further bytes start a compaction. */
  readonly tailBytes: number;
  /** Maximum bytes waiting for the disk. Above the limit, the journal reports itself as full. */
  readonly queueBytes: number;
  /** Maximum bytes of stored records that are kept on disk, to be sent again to a platform that was restored from a backup. */
  readonly sentBytes: number;
}

/** File in the folder of a journal that was restored from a backup. The platform may have stored later records under the same numbers. */
const RESTORED = 'restored';

/** Maximum waiting operations on the whole journal file. Only compaction and delivery start such operations, so a longer queue is a bug. */
const TURNS_MAX = 8;

export class Journal {
  readonly #options: JournalOptions;
  #journalId: string;
  #next = 1;
  #batches: Batch[] = [];
  /** Records without a number: in the file, or only in memory if there is no file. */
  #pending = new PendingRecords();
  readonly #queue: WriteQueue;
  readonly #sent: SentRecords;
  #timesFull = 0;
  #sequence = 0;
  /** Current file of the usage journal. Null if the disk cannot be written. */
  #file: GrowingFile | null = null;
  #isLost = false;
  #compactedBytes = 0;
  /** Size of the file at the time its records were numbered. Null unless a numbering is in progress. */
  #sealedBytes: number | null = null;
  /** Text appended to the old file while the next file is being written. */
  #meanwhile: string[] | null = null;
  #isCompactionDue = false;
  /** Queue of operations on the whole file, which run one after the other. */
  readonly #turns = new SerialQueue({ maxWaiting: TURNS_MAX, full: () => new Error('the journal is too far behind') });
  #isClosed = false;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#journalId = options.newId();
    this.#sent = new SentRecords({ folder: options.folder, maxBytes: options.sentBytes });
    this.#queue = new WriteQueue({
      maxBytes: options.queueBytes,
      write: (text, records) => this.#write(text, records),
      onFull: (bytes) => this.#onFull(bytes),
    });
  }

  /** Number of records that the platform has not acknowledged. */
  get size(): number {
    return this.#batches.reduce((sum, { records }) => sum + records.length, this.#pending.size + this.#queue.size);
  }

  /** State of the queue for the disk, and how often the queue was full. A full queue drops nothing, but no tunnels should be opened. */
  get waiting(): { readonly bytes: number; readonly isFull: boolean; readonly timesFull: number } {
    return { bytes: this.#queue.bytes, isFull: this.#queue.isFull, timesFull: this.#timesFull };
  }

  /** Recovers the journal of the last run. Never rejects: without a working disk, the journal is kept in memory. */
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
        // The recovered records are numbered before any other record is added. Even if the disk fails now, the next run gives the same
        // numbers to the same lines.
        this.#number();
        if (existsSync(join(folder, RESTORED))) this.#beginAgain();
        for (const end of ends) this.#pending.add(end);
      }
      await this.#writeFile();
      for (const file of files) await removeFound(folder, file).catch(() => undefined);
      await rm(join(folder, RESTORED), { force: true });
    } catch (error) {
      await this.#loseDisk(error);
    } finally {
      this.#meanwhile = null;
      this.#goOn();
    }
  }

  /**
   * Queues records for the disk. Only a single write is in progress at a time; the next write contains all records that arrived
   * meanwhile.
   */
  append(records: readonly JournalRecord[]): void {
    if (records.length === 0) return;
    this.#queue.add(records);
    // Without a file, and with no file in preparation, the records go to memory.
    if (this.#file === null && this.#meanwhile === null) this.#goOn();
  }

  /** Resolves when all records appended before are in the file, or when the disk has failed. */
  written(): Promise<void> {
    return this.#queue.written();
  }

  /** Numbers all records without a number. The numbers are on disk when the promise resolves, unless the disk has failed. */
  seal(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#queue.written();
      if (this.#pending.size === 0 && this.#file !== null) return;
      await this.#compact(() => this.#number());
    });
  }

  /**
   * After a disk failure, writes the whole journal to a new file if the disk works again. Assigns no numbers, so the call is safe while
   * the platform is unreachable.
   */
  async regain(): Promise<void> {
    if (this.#file === null) await this.#inTurn(() => this.#compact());
  }

  /** Next batch of records to send to the platform. Null if no numbered records are waiting. */
  get batch(): Batch | null {
    return this.#batches[0] ?? null;
  }

  /** Highest record number that this journal has assigned under a journal id. */
  lastNumber(journalId: string): number {
    if (journalId === this.#journalId) return this.#next - 1;
    return this.#batches
      .filter((batch) => batch.journalId === journalId)
      .reduce((last, batch) => Math.max(last, lastRecordNumber(batch)), 0);
  }

  /** Removes all records up to number `last`, which the platform has stored. */
  acknowledged(journalId: string, last: number): void {
    if (this.#file !== null) {
      void this.#sent.keep(onlyStored(this.#batches, journalId, last));
      this.#queue.note(acknowledgedLine(journalId, last));
    }
    this.#batches = withoutStored(this.#batches, journalId, last);
    // Another edge has sent records under the same journal id. Numbering continues after these records, so that the platform does not
    // mistake new records for known records.
    if (journalId === this.#journalId && last >= this.#next) this.#next = last + 1;
  }

  /**
   * Puts stored records back into the journal, because the platform has lost the records from number `first` to number `last`. Returns the
   * number of records that are no longer kept. If there are any, the remaining records need a new journal id.
   */
  async sendAgain(journalId: string, first: number, last: number): Promise<number> {
    const found = await this.#sent.find(journalId, first, last);
    if (found === null) return last - first + 1;
    const again = numberRecords(journalId, found.first, found.records, this.#options.batch);
    await this.#inTurn(async () => void this.#batches.unshift(...again));
    return found.first - first;
  }

  /**
   * Numbers the remaining records of a journal id again, from 1 under a new id. Needed if the platform has lost records that it had
   * acknowledged.
   */
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
    // This is the last chance to write usage records that exist only in memory.
    await this.regain();
    this.#isClosed = true;
    await this.#turns.settled();
    await this.#queue.written();
    await this.#sent.settled();
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

  /** Numbers later records from 1 under a new id. */
  #beginAgain(): void {
    this.#journalId = this.#options.newId();
    this.#next = 1;
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

  /** Writes queued records to the file. Written records then wait for their numbers. */
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

  /**
   * Rewrites the file after `change` was applied. On return, the result is in the new file, or the disk counts as failed. If no new file
   * can be written, and `change` is undefined, the old file stays in use.
   */
  async #compact(change?: () => void): Promise<void> {
    // Only records in the file get numbers, because the next run must assign the same numbers.
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
      // Records that arrived during the compaction may exceed the compaction limit again, and the next record may not arrive for hours.
      this.#compactIfDue();
    }
  }

  /** Resumes the write queue of the journal. Without a file, moves the queued records to memory. */
  #goOn(): void {
    if (this.#file !== null) return this.#queue.resume();
    for (const record of this.#queue.take()) this.#pending.add(record);
  }

  /**
   * Writes a new file and replaces the old file. The queue writes to the old file while the new file is prepared, and pauses while the
   * files are swapped.
   */
  async #writeFile(): Promise<void> {
    const { folder, logger } = this.#options;
    const before = this.#file;
    // The records are copied, because usage sums keep growing while the file is written.
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

  /**
   * Continues in memory after the disk has failed. Records in the file keep their journal id and numbers, because the next run would
   * assign the same numbers. `late` has the records of the failed write.
   */
  async #loseDisk(error: unknown, late: readonly JournalRecord[] = []): Promise<void> {
    const { folder, logger } = this.#options;
    const file = this.#file;
    const sealedBytes = this.#sealedBytes;
    this.#file = null;
    if (file !== null && sealedBytes === null) this.#number();
    this.#beginAgain();
    // The records are added before the first await, so that records arriving while the file is closed come later.
    for (const record of late) this.#pending.add(record);
    // Lines after this position were appended after the numbering, so the file is cut there.
    if (file !== null && sealedBytes !== null) await file.cutTo(sealedBytes);
    await file?.close();
    if (this.#isLost) return;
    this.#isLost = true;
    const reason = error instanceof Error ? error.message : String(error);
    logger.error({ folder, reason }, 'cannot write the journal; usage stays in memory until the disk works again');
  }
}
