// Reports observed requests. Observes only while there are listeners or a store.
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

  /** Subscribes to events of requests. Returns a function that ends the subscription. */
  on(listener: RequestListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Captures requests in `store` from now on. Null stops capturing. */
  keepIn(store: RequestStore | null): void {
    this.#store = store;
  }

  get isHeard(): boolean {
    return this.#listeners.size > 0 || this.#store !== null;
  }

  /** Wraps the visitor's end of a stream for observation. Returns the stream unchanged if nothing observes requests. */
  tap(visitor: ByteDuplex, tunnel: TunnelEntry, stream: RequestStream, service?: string): ByteDuplex {
    if (!this.isHeard) return visitor;
    // A stream is observed from its first byte or not at all, so that request numbers match the edge's.
    let ordinal = 0;
    const begin = (head: OpeningHead): RequestRecord | null => {
      ordinal += 1;
      const { replayOf = null } = head;
      const replay = replayOf === null ? null : { of: replayOf, isEdited: false, onEnd: () => {} };
      return this.#begin({ tunnel, service, id: requestIdOf(stream, ordinal), replay }, head);
    };
    return new TappedDuplex(visitor, new HttpTap(begin));
  }

  /**
   * Starts the record of a local replay, with a random id, since the edge does not know the request. Returns null if nothing observes
   * requests any more.
   */
  beginReplay(
    { tunnel, service }: Pick<RequestRecord, 'tunnel' | 'service'>,
    head: OpeningHead,
    replay: Replay,
  ): RequestRecord | null {
    return this.#begin({ tunnel, service, id: randomId('req'), replay }, head);
  }

  /** Records a response by the edge. If the client saw the request before, the response is added to its record. */
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

  /** Called when a recorded request that was started here has ended. */
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
        // A throwing listener must not affect the visitor, so the error is rethrown outside.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

// Fields are written out, because object spread would dominate the cost on a busy client.
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
