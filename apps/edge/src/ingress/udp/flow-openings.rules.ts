/** new flows of one client that it has not answered for: with more than this they would keep it from those that it has */
export const FLOWS_OPENING_MAX = 128;
/** as many may always be: a client that answers late is not a client that is busy */
export const FLOWS_OPENING_MIN = 32;
/** later than the fastest answer by more than this, the client is busy with new flows, and no further one begins */
export const FLOWS_OPENING_LATE_MS = 40;
/** the fastest answer of this time counts; a path may change */
export const FLOWS_OPENING_WINDOW_MS = 10_000;

// New flows of one client that it has not answered for yet, and whether one more may begin. A flood of new visitors must not stand in front of those
// who are there: flows begin only as fast as the client answers, so that little of its time is ever taken by them.

/** `F`: what stands for a flow. */
export class FlowOpenings<F> {
  /** Since when, in the order in which they began. */
  readonly #since = new Map<F, number>();
  // The fastest answer of this window and of the one before; 0: none yet.
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
    // Nothing is known of a client that has never answered.
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
    // At least a moment: 0 stands for none.
    const tookMs = Math.max(now - since, Number.MIN_VALUE);
    this.#fastestMs = this.#fastestMs === 0 ? tookMs : Math.min(this.#fastestMs, tookMs);
  }

  /** It ended before there was an answer. */
  gone(flow: F): void {
    this.#since.delete(flow);
  }

  #fastest(): number | null {
    if (this.#fastestMs === 0) return this.#fastestBefore === 0 ? null : this.#fastestBefore;
    return this.#fastestBefore === 0 ? this.#fastestMs : Math.min(this.#fastestMs, this.#fastestBefore);
  }
}
