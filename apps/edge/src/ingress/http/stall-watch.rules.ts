// Notices that nothing moves although something should: a peer that takes no byte while bytes wait for it, a service that takes none of a
// body. It is looked at now and then, so an end is noticed at the first look after its time. No clock of its own.

export class StallWatch {
  readonly #timeoutMs: number;
  /** null: nothing waits. */
  #sinceMs: number | null = null;
  #progress = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** `waits`: something should move. `progress`: any number that changes with every byte that does. true: it has stood still for too long. */
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
