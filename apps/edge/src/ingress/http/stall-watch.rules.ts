// Detects a peer that accepts no bytes while bytes are queued for it, or a service that stops reading a body. Has no timer: it is polled,
// so a stall is noticed at the first poll after the timeout.

export class StallWatch {
  readonly #timeoutMs: number;
  /** Time when a waiting connection last made progress. Null while no bytes are waiting. */
  #sinceMs: number | null = null;
  #progress = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Returns true if nothing has moved for too long. `waits`: bytes should be moving. `progress`: any number that changes with every byte
   * moved.
   */
  isOver(nowMs: number, waits: boolean, progress: number): boolean {
    if (!waits) {
      this.#sinceMs = null;
      return false;
    }
    if (this.#sinceMs === null || progress !== this.#progress) {
      this.#sinceMs = nowMs;
      this.#progress = progress;
      return false;
    }
    return nowMs - this.#sinceMs >= this.#timeoutMs;
  }
}
