// How often each key did something in the last window, whichever window one looks at: no more than so many times. The table is bounded, and the key
// that has done nothing for longest leaves first.

export interface RateWindowRules {
  readonly perWindow: number;
  readonly windowMs: number;
  readonly keysMax: number;
}

export class RateWindow {
  readonly #rules: RateWindowRules;
  /** The times of each key, oldest first; keys in the order of their latest. */
  readonly #times = new Map<string, number[]>();

  constructor(rules: RateWindowRules) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#times.size;
  }

  hasRoom(key: string, now: number): boolean {
    const times = this.#times.get(key);
    if (times === undefined) return true;
    const { perWindow, windowMs } = this.#rules;
    let over = 0;
    while (over < times.length && now - (times[over] as number) >= windowMs) over += 1;
    if (over > 0) times.splice(0, over);
    return times.length < perWindow;
  }

  /** Whoever was told that there is room. */
  record(key: string, now: number): void {
    const times = this.#times.get(key) ?? [];
    times.push(now);
    // Deleted first: it is the latest now.
    this.#times.delete(key);
    this.#times.set(key, times);
    this.#evict(now);
  }

  #evict(now: number): void {
    const { windowMs, keysMax } = this.#rules;
    for (const [key, times] of this.#times) {
      const isOver = now - (times.at(-1) ?? 0) >= windowMs;
      if (!isOver && this.#times.size <= keysMax) return;
      this.#times.delete(key);
    }
  }
}
