// Traffic counts of a tunnel, total and current.

import type { DatagramOutcome, Running } from '@tunnel/mux';
import { LinkedSet } from '@tunnel/rules/collections';

export interface TrafficCounts {
  /** Number of visitors since the tunnel was opened. */
  readonly connections: number;
  readonly open: number;
  /** HTTP requests on observed connections (onRequest or the inspector). */
  readonly requests: number;
  /** Number of requests answered by the edge itself. Not included in `requests`. */
  readonly edgeAnswered: number;
  /** Bytes from visitors to the local service. */
  readonly bytesIn: number;
  /** Bytes from the local service to visitors. */
  readonly bytesOut: number;
}

/**
 * Reason for a dropped datagram. `local` means that the system did not accept the datagram for the local service; the other values come
 * from the stream.
 */
export type DropReason = Exclude<DatagramOutcome, 'sent'> | 'local';

/** Live counts of one tunnel. Bytes of open connections are summed on demand, so that counting does not slow the traffic. */
export class Traffic {
  #connections = 0;
  #open = 0;
  #requests = 0;
  #edgeAnswered = 0;
  #bytesIn = 0;
  #bytesOut = 0;
  /** Open connections, with the visitor as `a` and the local service as `b`. */
  readonly #running = new LinkedSet<Running>();
  readonly #dropped: Partial<Record<DropReason, number>> = {};

  started(): void {
    this.#connections += 1;
    this.#open += 1;
  }

  requested(): void {
    this.#requests += 1;
  }

  answeredByEdge(count: number): void {
    this.#edgeAnswered += count;
  }

  joined(joined: Running): void {
    joined.amongRunning = this.#running.add(joined);
  }

  ended(joined?: Running): void {
    this.#open -= 1;
    if (joined === undefined) return;
    this.#running.delete(joined.amongRunning);
    this.#bytesIn += joined.bytesAToB;
    this.#bytesOut += joined.bytesBToA;
  }

  dropped(reason: DropReason, count = 1): void {
    this.#dropped[reason] = (this.#dropped[reason] ?? 0) + count;
  }

  drops(): Readonly<Partial<Record<DropReason, number>>> {
    return { ...this.#dropped };
  }

  counts(): TrafficCounts {
    let bytesIn = this.#bytesIn;
    let bytesOut = this.#bytesOut;
    for (const joined of this.#running) {
      bytesIn += joined.bytesAToB;
      bytesOut += joined.bytesBToA;
    }
    const connections = this.#connections;
    const open = this.#open;
    const requests = this.#requests;
    const edgeAnswered = this.#edgeAnswered;
    return { connections, open, requests, edgeAnswered, bytesIn, bytesOut };
  }
}
