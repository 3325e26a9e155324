/** Maximum new flows of a client that it has not answered yet. More would delay the client's existing flows. */
export const FLOWS_OPENING_MAX = 128;
/** Number of unanswered new flows that is always allowed, because a client with a slow path is not overloaded. */
export const FLOWS_OPENING_MIN = 32;
/** Delay beyond the client's fastest answer at which the client counts as busy with new flows. Further flows are then not started. */
export const FLOWS_OPENING_LATE_MS = 40;
/** Period in which the client's fastest answer to a new flow counts. Limited, because a network path may change. */
export const FLOWS_OPENING_WINDOW_MS = 10_000;

// Unanswered new flows of a client, and whether another flow may start. New flows start only as fast as the client answers, so that a flood
// of new visitors cannot delay existing visitors.

/** New UDP flows that a client has not answered. `F` identifies a flow. */
export class FlowOpenings<F> {
  /** Start times of flows that the client has not answered, in order of start. */
  readonly #since = new Map<F, number>();
  // Fastest answers of the client to new flows, in the current and the previous period. 0 while unknown.
  #fastestMs = 0;
  #fastestBefore = 0;
  #windowEndsAt = Number.NEGATIVE_INFINITY;

  get size(): number {
    return this.#since.size;
  }

  mayBegin(now: number): boolean {
    if (this.#since.size < FLOWS_OPENING_MIN) return true;
    if (this.#since.size >= FLOWS_OPENING_MAX) return false;
    const [oldest = now] = this.#since.values();
    const fastest = this.#fastest();
    // As long as the client has answered no flow, its speed is unknown.
    return fastest === null || now - oldest <= fastest + FLOWS_OPENING_LATE_MS;
  }

  begun(flow: F, now: number): void {
    this.#since.set(flow, now);
  }

  answered(flow: F, now: number): void {
    const since = this.#since.get(flow);
    if (since === undefined) return;
    this.#since.delete(flow);
    if (now >= this.#windowEndsAt) {
      this.#fastestBefore = this.#fastestMs;
      this.#fastestMs = 0;
      this.#windowEndsAt = now + FLOWS_OPENING_WINDOW_MS;
    }
    // The answer's duration is never stored as 0, because 0 means unknown.
    const tookMs = Math.max(now - since, Number.MIN_VALUE);
    this.#fastestMs = this.#fastestMs === 0 ? tookMs : Math.min(this.#fastestMs, tookMs);
  }

  /** Removes a UDP flow that ended before the client answered. */
  gone(flow: F): void {
    this.#since.delete(flow);
  }

  #fastest(): number | null {
    if (this.#fastestMs === 0) return this.#fastestBefore === 0 ? null : this.#fastestBefore;
    return this.#fastestBefore === 0 ? this.#fastestMs : Math.min(this.#fastestMs, this.#fastestBefore);
  }
}
