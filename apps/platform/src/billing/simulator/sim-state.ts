// Every object of the stand-in. Objects are never changed, only replaced; what a call changed is kept as a whole or not at all.
import { Journal } from './journal.ts';
import type { SimKind, SimSettings, SimTables } from './sim-objects.ts';

const KINDS: readonly SimKind[] = [
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
const FIRST_SETTINGS: SimSettings = { id: 'settings', offset_ms: 0, webhook_mode: 'normal' };
const DAY_MS = 24 * 60 * 60_000;
/** The file is written anew beyond this size. */
const COMPACT_BYTES = 64 * 1024 * 1024;

type Row = { readonly id: string };
type Change = readonly [kind: SimKind, id: string, row: Row | null];

export class SimState {
  readonly #journal: Journal;
  readonly #tables = new Map<SimKind, Map<string, Row>>(KINDS.map((kind) => [kind, new Map<string, Row>()]));
  #changes: Change[] = [];
  #undo: Change[] = [];
  #compactAt = COMPACT_BYTES;

  constructor(folder: string) {
    this.#journal = new Journal(folder);
    for (const line of this.#journal.read()) for (const change of line as Change[]) this.#apply(change);
    this.#compact();
  }

  get settings(): SimSettings {
    return this.get('settings', 'settings') ?? FIRST_SETTINGS;
  }

  get<K extends SimKind>(kind: K, id: string): SimTables[K] | undefined {
    return this.#table(kind).get(id) as SimTables[K] | undefined;
  }

  /** Oldest first. */
  all<K extends SimKind>(kind: K): SimTables[K][] {
    return [...this.#table(kind).values()] as SimTables[K][];
  }

  count(kind: SimKind): number {
    return this.#table(kind).size;
  }

  put<K extends SimKind, R extends SimTables[K]>(kind: K, row: R): R {
    this.#note([kind, row.id, row]);
    return row;
  }

  remove(kind: SimKind, id: string): void {
    this.#note([kind, id, null]);
  }

  /** Runs to its end without waiting, so nothing comes between; changes of one that throws are taken back. */
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

  /** Answers of POSTs are known for a day. */
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

  #table(kind: SimKind): Map<string, Row> {
    const table = this.#tables.get(kind);
    if (table === undefined) throw new Error(`the simulator has no ${kind}`);
    return table;
  }
}
