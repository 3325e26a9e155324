// The last requests of a client, for the inspector: bounded in number and in bytes, the oldest give way.
import type { RequestRecord } from './request-record.ts';

/**
 * requests that the inspector of one client can show; the oldest give way
 * @limit dashboard: Inspector: requests per client | the oldest request is dropped
 */
export const INSPECTOR_REQUESTS_MAX = 200;
/** what they may hold together, heads and bodies */
export const INSPECTOR_REQUESTS_BYTES = 8 * 1024 * 1024;

/** What a record costs beside its texts. */
const RECORD_BYTES = 512;
const RECORDS_MAX = INSPECTOR_REQUESTS_MAX;

export class RequestStore {
  /** A ring: `#count` of them from `#first` on, in the order in which they came. */
  readonly #ring: (RequestRecord | null)[] = Array.from({ length: RECORDS_MAX }, () => null);
  #first = 0;
  #count = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Newest first. */
  list(): RequestRecord[] {
    const records: RequestRecord[] = [];
    for (let at = this.#count - 1; at >= 0; at -= 1) {
      const record = this.#ring[(this.#first + at) % RECORDS_MAX];
      if (record != null) records.push(record);
    }
    return records;
  }

  /** Asked by people, of a few: a table by id would cost every request. */
  get(id: string): RequestRecord | undefined {
    return this.list().find((record) => record.id === id);
  }

  add(record: RequestRecord): void {
    if (this.#count === RECORDS_MAX) this.#dropOldest();
    this.#ring[(this.#first + this.#count) % RECORDS_MAX] = record;
    this.#count += 1;
    record.heldBytes = 0;
    this.grow(record, RECORD_BYTES + (record.requestText?.length ?? 0));
  }

  /** A record that has given way already costs nothing here: it ends with its connection. */
  grow(record: RequestRecord, bytes: number): void {
    if (record.heldBytes < 0) return;
    record.heldBytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > INSPECTOR_REQUESTS_BYTES && this.#count > 0) this.#dropOldest();
  }

  #dropOldest(): void {
    const oldest = this.#ring[this.#first];
    this.#ring[this.#first] = null;
    this.#first = (this.#first + 1) % RECORDS_MAX;
    this.#count -= 1;
    if (oldest == null) return;
    this.#bytes -= oldest.heldBytes;
    oldest.heldBytes = -1;
  }
}
