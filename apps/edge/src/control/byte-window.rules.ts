// How many bytes each key moved in the last window, whichever window one looks at: no more than so many. The table is bounded, and the key that has
// moved nothing for longest leaves first.

export interface ByteWindowRules {
  readonly bytesPerWindow: number;
  readonly windowMs: number;
  readonly keysMax: number;
}

/** What came within one slot of time. It counts until all of it has left the window, however small its pieces were: the list stays short. */
interface Portion {
  readonly untilMs: number;
  bytes: number;
}

const SLOTS_PER_WINDOW = 60;

export class ByteWindow {
  readonly #rules: ByteWindowRules;
  /** Of each key, oldest first; keys in the order of their latest. */
  readonly #portions = new Map<string, Portion[]>();

  constructor(rules: ByteWindowRules) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#portions.size;
  }

  /** 0: they are counted. Else they are not, and would be after so many milliseconds; Infinity: never, they are more than a window holds. */
  take(key: string, bytes: number, nowMs: number): number {
    const portions = (this.#portions.get(key) ?? []).filter(({ untilMs }) => nowMs < untilMs);
    let over = portions.reduce((sum, portion) => sum + portion.bytes, bytes) - this.#rules.bytesPerWindow;
    if (over <= 0) {
      this.#record(key, portions, bytes, nowMs);
      return 0;
    }
    for (const portion of portions) {
      over -= portion.bytes;
      if (over <= 0) return portion.untilMs - nowMs;
    }
    return Number.POSITIVE_INFINITY;
  }

  #record(key: string, portions: Portion[], bytes: number, nowMs: number): void {
    const { windowMs, keysMax } = this.#rules;
    const slotMs = windowMs / SLOTS_PER_WINDOW;
    const untilMs = (Math.floor(nowMs / slotMs) + 1) * slotMs + windowMs;
    const latest = portions.at(-1);
    if (latest?.untilMs === untilMs) latest.bytes += bytes;
    else portions.push({ untilMs, bytes });
    // Deleted first: it is the latest now.
    this.#portions.delete(key);
    this.#portions.set(key, portions);
    for (const oldest of this.#portions.keys()) {
      if (this.#portions.size <= keysMax) return;
      this.#portions.delete(oldest);
    }
  }
}
