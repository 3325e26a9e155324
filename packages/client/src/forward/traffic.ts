// What one tunnel has carried, and carries now.
import type { Splice } from '@tunnel/mux';

export interface TrafficCounts {
  /** Visitors since the tunnel was opened. */
  readonly connections: number;
  readonly open: number;
  /** HTTP requests, of those connections that somebody looked at (onRequest, the inspector). */
  readonly requests: number;
  /** From visitors to the local service. */
  readonly bytesIn: number;
  /** From the local service to visitors. */
  readonly bytesOut: number;
}

/** The live counts of one tunnel. Running connections are summed up when somebody asks, so that counting costs the flow nothing. */
export class Traffic {
  #connections = 0;
  #open = 0;
  #requests = 0;
  #bytesIn = 0;
  #bytesOut = 0;
  readonly #running = new Set<Splice>();

  started(): void {
    this.#connections += 1;
    this.#open += 1;
  }

  requested(): void {
    this.#requests += 1;
  }

  /** The visitor (a) and the local service (b) are joined. */
  joined(splice: Splice): void {
    this.#running.add(splice);
  }

  ended(splice?: Splice): void {
    this.#open -= 1;
    if (splice === undefined) return;
    this.#running.delete(splice);
    this.#bytesIn += splice.bytesAToB;
    this.#bytesOut += splice.bytesBToA;
  }

  counts(): TrafficCounts {
    let bytesIn = this.#bytesIn;
    let bytesOut = this.#bytesOut;
    for (const splice of this.#running) {
      bytesIn += splice.bytesAToB;
      bytesOut += splice.bytesBToA;
    }
    return { connections: this.#connections, open: this.#open, requests: this.#requests, bytesIn, bytesOut };
  }
}
