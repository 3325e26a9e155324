// The latest requests of a client for the inspector, limited in number and bytes. The oldest are evicted.
import type { RequestRecord } from './request-record.ts';

/**
 * Maximum number of requests in the inspector of one client.
 * @limit dashboard: Inspector: requests per client | the oldest request is dropped
 */
export const INSPECTOR_REQUESTS_MAX = 200;
/** Maximum bytes of all captured requests, heads and bodies. */
export const INSPECTOR_REQUESTS_BYTES = 8 * 1024 * 1024;

/** Estimated memory size of a request record without its texts. */
const RECORD_BYTES = 512;
const RECORDS_MAX = INSPECTOR_REQUESTS_MAX;

export class RequestStore {
  /** Ring buffer of request records: `#count` records from `#first` on, oldest first. */
  readonly #ring: (RequestRecord | null)[] = Array.from({ length: RECORDS_MAX }, () => null);
  #first = 0;
  #count = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the captured requests, newest first. */
  list(): RequestRecord[] {
    const records: RequestRecord[] = [];
    for (let at = this.#count - 1; at >= 0; at -= 1) {
      const record = this.#ring[(this.#first + at) % RECORDS_MAX];
      if (record != null) records.push(record);
    }
    return records;
  }

  /** Finds a request by linear search. Lookups are rare, and an index would cost every request. */
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

  /** Counts more bytes of a record, and evicts the oldest records above the limit. An already evicted record costs nothing here. */
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
