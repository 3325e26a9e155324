// Decides how many carriers a session keeps open: few while the tunnels are quiet, because each carrier costs a socket, memory and pings at
// both ends; up to the edge's number while visitors are connected.

/** Carriers of a session without visitors: one for the first visitor, and one for the next visitor while the first is busy. */
export const CARRIERS_AT_REST = 2;
/** How long a carrier must be superfluous before it is closed, so that the visits of a page do not open and close carriers. */
export const CARRIER_SURPLUS_MS = 60_000;

/** Number of carriers for the streams of a session: one more than streams, so that a new stream does not wait behind bulk data. */
const neededFor = (streams: number, most: number): number =>
  Math.min(most, Math.max(CARRIERS_AT_REST, Math.min(streams, most) + 1));

export class CarrierCount {
  readonly #most: number;
  #wanted: number;
  /** Highest number needed since the current period began. */
  #neededInPeriod = 0;
  #periodSinceMs: number;

  /** `most` is the number of carriers requested by the edge. */
  constructor(most: number, nowMs: number) {
    this.#most = most;
    this.#wanted = Math.min(most, CARRIERS_AT_REST);
    this.#periodSinceMs = nowMs;
  }

  get wanted(): number {
    return this.#wanted;
  }

  /** Returns the number of carriers wanted for `streams` open streams. Grows at once, and shrinks after a period with fewer streams. */
  update(streams: number, nowMs: number): number {
    const needed = neededFor(streams, this.#most);
    this.#neededInPeriod = Math.max(this.#neededInPeriod, needed);
    if (needed >= this.#wanted) this.#startPeriod(needed, nowMs);
    else if (nowMs - this.#periodSinceMs >= CARRIER_SURPLUS_MS) this.#startPeriod(this.#neededInPeriod, nowMs);
    return this.#wanted;
  }

  #startPeriod(wanted: number, nowMs: number): void {
    this.#wanted = wanted;
    this.#neededInPeriod = 0;
    this.#periodSinceMs = nowMs;
  }
}
