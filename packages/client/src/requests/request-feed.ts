// Hands out what is seen of the requests, and looks only while somebody listens.
import type { RequestHead } from '@tunnel/core';
import type { ByteDuplex } from '@tunnel/mux';
import type { Clock } from '@tunnel/runtime';
import type { KeptTunnel } from '../tunnel.ts';
import { isHttp } from '../tunnel-spec.ts';
import { HttpTap } from './http-tap.ts';
import type { RequestEvent, RequestListener } from './request-events.ts';
import type { RequestLog } from './request-log.ts';
import { RequestRecord } from './request-record.ts';
import { TappedDuplex } from './tapped-duplex.ts';

/** What makes a request one that was sent again. */
export interface Replay {
  readonly of: string;
  onEnd(): void;
}

export class RequestFeed {
  readonly #clock: Clock;
  readonly #listeners = new Set<RequestListener>();
  #log: RequestLog | null = null;
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns what ends the listening. */
  on(listener: RequestListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** From now on requests are kept in `log`; null ends that. */
  keepIn(log: RequestLog | null): void {
    this.#log = log;
  }

  get isHeard(): boolean {
    return this.#listeners.size > 0 || this.#log !== null;
  }

  /** The visitor's end itself when there is nothing to look at, or nobody who wants to know. */
  wrap(visitor: ByteDuplex, tunnel: KeptTunnel): ByteDuplex {
    if (!this.isHeard || !isHttp(tunnel.protocol) || tunnel.spec.localProtocol === 'h2c') return visitor;
    return new TappedDuplex(visitor, new HttpTap((head) => this.begin(tunnel, head)));
  }

  /** null: nobody listens any more. */
  begin(tunnel: KeptTunnel, head: RequestHead, replay?: Replay): RequestRecord | null {
    if (!this.isHeard) return null;
    this.#count += 1;
    const log = tunnel.spec.capture === false ? null : this.#log;
    const record = new RequestRecord(
      { id: `req_${this.#count}`, tunnel, at: this.#clock.now(), replayOf: replay?.of ?? null },
      head,
      {
        monotonic: () => this.#clock.monotonic(),
        keep: log !== null,
        onGrown: (grown, bytes) => log?.grow(grown, bytes),
        onEnd: (ended) => {
          this.#emit(finishedEvent(ended));
          replay?.onEnd();
        },
      },
    );
    log?.add(record);
    if (replay === undefined) tunnel.traffic.requested();
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
