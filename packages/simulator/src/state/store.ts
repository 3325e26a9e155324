// All objects of the simulator. Objects are replaced, never mutated; the changes of a call are saved completely or not at all.
import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { lineOf, wholeLines, writeAtomicSync } from '@tunnel/runtime';
import type { Settings, TableName, Tables } from './model.ts';

const KINDS: readonly TableName[] = [
  'customers',
  'setup_intents',
  'payment_methods',
  'meters',
  'prices',
  'subscriptions',
  'invoice_items',
  'invoices',
  'portal_sessions',
  'meter_events',
  'events',
  'answers',
  'settings',
];
const FIRST_SETTINGS: Settings = { id: 'settings', offset_ms: 0, webhook_mode: 'normal' };
const DAY_MS = 24 * 60 * 60_000;
/** Size beyond which the state file is compacted. */
const COMPACT_BYTES = 64 * 1024 * 1024;

type Row = { readonly id: string };
type Change = readonly [kind: TableName, id: string, row: Row | null];

export class Store {
  readonly #journal: Journal;
  readonly #tables = new Map<TableName, Map<string, Row>>(KINDS.map((kind) => [kind, new Map<string, Row>()]));
  #changes: Change[] = [];
  #undo: Change[] = [];
  #compactAt = COMPACT_BYTES;

  constructor(folder: string) {
    this.#journal = new Journal(folder);
    for (const line of this.#journal.read()) for (const change of line as Change[]) this.#apply(change);
    this.#compact();
  }

  get settings(): Settings {
    return this.get('settings', 'settings') ?? FIRST_SETTINGS;
  }

  get<K extends TableName>(kind: K, id: string): Tables[K] | undefined {
    return this.#table(kind).get(id) as Tables[K] | undefined;
  }

  /** Returns all stored objects of a kind, oldest first. */
  all<K extends TableName>(kind: K): Tables[K][] {
    return [...this.#table(kind).values()] as Tables[K][];
  }

  count(kind: TableName): number {
    return this.#table(kind).size;
  }

  put<K extends TableName, R extends Tables[K]>(kind: K, row: R): R {
    this.#note([kind, row.id, row]);
    return row;
  }

  remove(kind: TableName, id: string): void {
    this.#note([kind, id, null]);
  }

  /** Runs synchronously, so that calls do not interleave. If `work` throws, its changes are reverted. */
  transact<T>(work: () => T): T {
    try {
      const result = work();
      if (this.#changes.length > 0) this.#journal.append(this.#changes);
      this.#settle();
      if (this.#journal.bytes > this.#compactAt) this.#compact();
      return result;
    } catch (error) {
      for (const change of this.#undo.reverse()) this.#apply(change);
      this.#settle();
      throw error;
    }
  }

  /** Deletes kept responses to POSTs after a day. */
  forgetAnswers(nowMs: number): void {
    this.transact(() => {
      for (const { id, answered_ms } of this.all('answers')) {
        if (answered_ms < nowMs - DAY_MS) this.remove('answers', id);
      }
    });
  }

  close(): void {
    this.#journal.close();
  }

  #note(change: Change): void {
    const [kind, id] = change;
    this.#undo.push([kind, id, this.#table(kind).get(id) ?? null]);
    this.#changes.push(change);
    this.#apply(change);
  }

  #settle(): void {
    this.#changes = [];
    this.#undo = [];
  }

  #apply([kind, id, row]: Change): void {
    if (row === null) this.#table(kind).delete(id);
    else this.#table(kind).set(id, row);
  }

  #compact(): void {
    const lines = KINDS.flatMap((kind) => this.all(kind).map((row): Change[] => [[kind, row.id, row]]));
    this.#journal.begin(lines);
    this.#compactAt = this.#journal.bytes + COMPACT_BYTES;
  }

  #table(kind: TableName): Map<string, Row> {
    const table = this.#tables.get(kind);
    if (table === undefined) throw new Error(`the simulator has no ${kind}`);
    return table;
  }
}

// Journal of the simulator: one line per call with all its changes, written before the response. A killed process loses at most an
// unacknowledged line. Without fsync, because only the process is expected to die, not the machine.

const FILE = 'journal.jsonl';

class Journal {
  readonly #path: string;
  #file: number | undefined;
  #length = 0;

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#path = join(folder, FILE);
  }

  /** Returns every complete line of the state file, parsed. */
  read(): unknown[] {
    const lines = [...wholeLines(readText(this.#path))];
    return lines.map((line, index) => parseLine(line, `${this.#path}:${index + 1}`));
  }

  /** Replaces the state file with these lines and opens it for appending. */
  begin(lines: readonly object[]): void {
    const bytes = Buffer.from(lines.map(lineOf).join(''), 'utf8');
    writeAtomicSync(this.#path, bytes, { flush: true, soleWriter: true });
    this.close();
    this.#file = openSync(this.#path, 'a', 0o600);
    this.#length = bytes.length;
  }

  get bytes(): number {
    return this.#length;
  }

  append(line: object): void {
    if (this.#file === undefined) throw new Error('the journal of the simulator is closed');
    const bytes = Buffer.from(lineOf(line), 'utf8');
    try {
      writeWhole(this.#file, bytes);
    } catch (error) {
      // Removes a partially written line, because it would corrupt the next line of the state file.
      ftruncateSync(this.#file, this.#length);
      throw error;
    }
    this.#length += bytes.length;
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

const writeWhole = (file: number, bytes: Buffer): void => {
  for (let from = 0; from < bytes.length; ) from += writeSync(file, bytes, from);
};

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
};

const parseLine = (line: string, where: string): unknown => {
  try {
    return JSON.parse(line) as unknown;
  } catch (error) {
    throw new Error(`${where}: the journal of the simulator cannot be read`, { cause: error });
  }
};
