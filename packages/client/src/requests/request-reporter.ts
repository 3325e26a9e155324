// Tells what is seen of the requests, looks only while somebody listens, and keeps the last of them for the inspector.
import type { RequestHead } from '@tunnel/core';
import type { ByteDuplex } from '@tunnel/mux';
import { type RequestStream, requestIdOf } from '@tunnel/protocol';
import { type Clock, randomId } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import type { TunnelEntry } from '../tunnel.ts';
import { HttpTap, TappedDuplex } from './http-tap.ts';
import { type RequestEvent, type RequestListener, RequestRecord } from './request-record.ts';

/** What makes a request one that was sent again. */
export interface Replay {
  readonly of: string;
  readonly isEdited: boolean;
  onEnd(): void;
}

export class RequestReporter {
  readonly #clock: Clock;
  readonly #listeners = new Set<RequestListener>();
  #store: RequestStore | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns what ends the listening. */
  on(listener: RequestListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** From now on requests are kept in `store`; null ends that. */
  keepIn(store: RequestStore | null): void {
    this.#store = store;
  }

  get isHeard(): boolean {
    return this.#listeners.size > 0 || this.#store !== null;
  }

  /** The visitor's end of a stream with somebody looking on; itself when nobody wants to know. */
  tap(visitor: ByteDuplex, tunnel: TunnelEntry, stream: RequestStream): ByteDuplex {
    if (!this.isHeard) return visitor;
    // Looked at from its first byte on, or not at all: the edge counts the same.
    let ordinal = 0;
    const begin = (head: RequestHead): RequestRecord | null => {
      ordinal += 1;
      return this.#begin(tunnel, head, requestIdOf(stream, ordinal));
    };
    return new TappedDuplex(visitor, new HttpTap(begin));
  }

  /** One that is sent again from here: the edge knows nothing of it, so that its name is ours to choose. null: nobody listens any more. */
  beginReplay(tunnel: TunnelEntry, head: RequestHead, replay: Replay): RequestRecord | null {
    return this.#begin(tunnel, head, randomId('req'), replay);
  }

  #begin(tunnel: TunnelEntry, head: RequestHead, id: string, replay?: Replay): RequestRecord | null {
    if (!this.isHeard) return null;
    const store = tunnel.spec.capture === false ? null : this.#store;
    const facts = {
      id,
      tunnel,
      at: this.#clock.now(),
      replayOf: replay?.of ?? null,
      isEdited: replay?.isEdited ?? false,
    };
    const record = new RequestRecord(facts, head, {
      monotonic: () => this.#clock.monotonic(),
      keep: store !== null,
      onGrown: (grown, bytes) => store?.grow(grown, bytes),
      onEnd: (ended) => {
        this.#emit(finishedEvent(ended));
        replay?.onEnd();
      },
    });
    store?.add(record);
    tunnel.traffic.requested();
    this.#emit({ type: 'request-started', ...factsOf(record) });
    return record;
  }

  #emit(event: RequestEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        // A listener's mistake belongs to the program, not to the visitor.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

const factsOf = ({ id, tunnel, method, shownPath: path, at, replayOf }: RequestRecord) => ({
  id,
  tunnel,
  method,
  path,
  at,
  replayOf,
});

const finishedEvent = (record: RequestRecord): RequestEvent => ({
  type: 'request-finished',
  ...factsOf(record),
  status: record.status,
  durationMs: record.durationMs,
  requestBytes: record.requestBody.bytes,
  responseBytes: record.responseBody.bytes,
  aborted: record.state === 'aborted',
});

/** What a record costs beside its texts. */
const RECORD_BYTES = 512;

/** The last requests of a client, bounded in number and in bytes: the oldest give way. */
export class RequestStore {
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
