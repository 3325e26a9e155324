// Tells what is seen of the requests, and looks only while somebody listens or keeps them.
import type { ByteDuplex } from '@tunnel/mux';
import { type MessageOf, type RequestStream, requestIdOf } from '@tunnel/protocol';
import { type Clock, randomId } from '@tunnel/runtime';
import type { TunnelEntry } from '../tunnels/tunnel.ts';
import { HttpTap, TappedDuplex } from './http-tap.ts';
import {
  type EdgeAnswer,
  type Replay,
  type RequestEvent,
  type RequestListener,
  RequestRecord,
} from './request-record.ts';
import type { RequestStore } from './request-store.ts';
import type { OpeningHead } from './sniffed-head.ts';

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
  tap(visitor: ByteDuplex, tunnel: TunnelEntry, stream: RequestStream, service?: string): ByteDuplex {
    if (!this.isHeard) return visitor;
    // Looked at from its first byte on, or not at all: the edge counts the same.
    let ordinal = 0;
    const begin = (head: OpeningHead): RequestRecord | null => {
      ordinal += 1;
      const { replayOf = null } = head;
      const replay = replayOf === null ? null : { of: replayOf, isEdited: false, onEnd: () => {} };
      return this.#begin({ tunnel, service, id: requestIdOf(stream, ordinal), replay }, head);
    };
    return new TappedDuplex(visitor, new HttpTap(begin));
  }

  /** One that is sent again from here: the edge knows nothing of it, so that its name is ours to choose. null: nobody listens any more. */
  beginReplay(
    { tunnel, service }: Pick<RequestRecord, 'tunnel' | 'service'>,
    head: OpeningHead,
    replay: Replay,
  ): RequestRecord | null {
    return this.#begin({ tunnel, service, id: randomId('req'), replay }, head);
  }

  /** A visitor got an answer of the edge's own. Where the request came by here first, the list shows the answer with that request. */
  edgeAnswered(tunnel: TunnelEntry, { request_id: id, ...message }: MessageOf<'EdgeAnswered'>): void {
    if (!this.isHeard) return;
    const { method, path, status, code, rule, duration_ms: durationMs } = message;
    const answer = { status, code, rule, durationMs };
    const known = this.#store?.get(id);
    const facts = { id, tunnel, service: undefined, at: Date.parse(message.at), replay: null, keeper: null };
    const record = known ?? new RequestRecord(facts, { method, path, text: '' }, this);
    record.answeredByEdge(answer);
    if (known === undefined) {
      if (tunnel.asked.capture !== false) this.#store?.add(record);
      tunnel.traffic.answeredByEdge(1);
    }
    if (this.#listeners.size > 0) this.#emit(edgeAnsweredEvent(record, answer));
  }

  edgeAnsweredMore(tunnel: TunnelEntry, count: number): void {
    tunnel.traffic.answeredByEdge(count);
    if (this.#listeners.size > 0) this.#emit({ type: 'edge-answered-more', tunnel, count });
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  /** Of a record that it began. */
  onEnd(record: RequestRecord): void {
    if (this.#listeners.size > 0) this.#emit(finishedEvent(record));
    record.replay?.onEnd();
  }

  #begin(
    { tunnel, service, id, replay }: Pick<RequestRecord, 'tunnel' | 'service' | 'id' | 'replay'>,
    head: OpeningHead,
  ): RequestRecord | null {
    if (!this.isHeard) return null;
    const keeper = tunnel.asked.capture === false ? null : this.#store;
    const record = new RequestRecord({ id, tunnel, service, at: this.#clock.now(), replay, keeper }, head, this);
    keeper?.add(record);
    tunnel.traffic.requested();
    if (this.#listeners.size > 0) this.#emit(startedEvent(record));
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

// Written out: copying fields from one object to the next costs a busy client more than all else here.
const startedEvent = (record: RequestRecord): RequestEvent => ({
  type: 'request-started',
  id: record.id,
  tunnel: record.tunnel,
  method: record.method,
  path: record.shownPath,
  at: record.at,
  replayOf: record.replayOf,
});

const edgeAnsweredEvent = (record: RequestRecord, answer: EdgeAnswer): RequestEvent => ({
  type: 'edge-answered',
  id: record.id,
  tunnel: record.tunnel,
  method: record.method,
  path: record.shownPath,
  at: record.at,
  replayOf: record.replayOf,
  ...answer,
});

const finishedEvent = (record: RequestRecord): RequestEvent => ({
  type: 'request-finished',
  id: record.id,
  tunnel: record.tunnel,
  method: record.method,
  path: record.shownPath,
  at: record.at,
  replayOf: record.replayOf,
  status: record.status,
  durationMs: record.durationMs,
  requestBytes: record.requestBody.bytes,
  responseBytes: record.responseBody.bytes,
  aborted: record.state === 'aborted',
});
