// The last requests of a client, bounded in number and in bytes: the oldest give way.
import { CLIENT_LIMITS } from '../limits.ts';
import type { RequestRecord } from './request-record.ts';

/** What a record costs beside its texts. */
const RECORD_BYTES = 512;

export class RequestLog {
  /** In the order in which they came, with the bytes each one holds. */
  readonly #held = new Map<RequestRecord, number>();
  readonly #byId = new Map<string, RequestRecord>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Newest first. */
  list(): RequestRecord[] {
    return [...this.#held.keys()].reverse();
  }

  get(id: string): RequestRecord | undefined {
    return this.#byId.get(id);
  }

  add(record: RequestRecord): void {
    this.#held.set(record, 0);
    this.#byId.set(record.id, record);
    this.grow(record, RECORD_BYTES + (record.requestHead?.text.length ?? 0));
  }

  /** A record that has given way already costs nothing here: it ends with its connection. */
  grow(record: RequestRecord, bytes: number): void {
    const before = this.#held.get(record);
    if (before === undefined) return;
    this.#held.set(record, before + bytes);
    this.#bytes += bytes;
    this.#trim();
  }

  #trim(): void {
    for (const [record, bytes] of this.#held) {
      if (
        this.#held.size <= CLIENT_LIMITS.INSPECTOR_REQUESTS_MAX &&
        this.#bytes <= CLIENT_LIMITS.INSPECTOR_REQUESTS_BYTES
      )
        return;
      this.#held.delete(record);
      this.#byId.delete(record.id);
      this.#bytes -= bytes;
    }
  }
}
