// Records that wait to be numbered. Usage of one tunnel and one day is one record, however often it is added to.
import type { JournalRecord } from '@tunnel/contract';

type Usage = { -readonly [K in keyof UsageRecord]: UsageRecord[K] };
export type UsageRecord = Extract<JournalRecord, { kind: 'usage' }>;

const DAY_MS = 86_400_000;

/** The order is that of the first record of its kind, so the same lines always give the same records. */
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

  /** All of them; none is left. */
  take(): JournalRecord[] {
    const records = this.#records;
    this.#records = [];
    this.#usage.clear();
    return records;
  }
}
