// What one tunnel has carried, and carries now.

import type { DatagramOutcome, Running } from '@tunnel/mux';
import { LinkedSet } from '@tunnel/rules/collections';

export interface TrafficCounts {
  /** Visitors since the tunnel was opened. */
  readonly connections: number;
  readonly open: number;
  /** HTTP requests, of those connections that somebody looked at (onRequest, the inspector). */
  readonly requests: number;
  /** Requests that visitors got an answer of the edge's own to, and that are not among `requests`. */
  readonly edgeAnswered: number;
  /** From visitors to the local service. */
  readonly bytesIn: number;
  /** From the local service to visitors. */
  readonly bytesOut: number;
}

/** Why a datagram was not passed on. `local`: the machine did not take it for the local service; the others are the stream's words. */
export type DropReason = Exclude<DatagramOutcome, 'sent'> | 'local';

/** The live counts of one tunnel. Running connections are summed up when somebody asks, so that counting costs the flow nothing. */
export class Traffic {
  #connections = 0;
  #open = 0;
  #requests = 0;
  #edgeAnswered = 0;
  #bytesIn = 0;
  #bytesOut = 0;
  /** Of each a visitor is `a`, the local service `b`. */
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
