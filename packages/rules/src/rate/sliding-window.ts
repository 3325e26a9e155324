// Limits events, failures or bytes in any period of a fixed length. A single window, or a window per key in a bounded table that forgets
// the key with the oldest event first.
import { LinkedSet, type ListNode } from '../collections/linked-set.ts';

export interface WindowRules {
  readonly perWindow: number;
  readonly windowMs: number;
  /**
   * Events within this time after the first of a portion count as simultaneous, which keeps the list short. If equal to `windowMs`, a
   * window begins with its first event and ends as a whole. Default 0: every event expires individually.
   */
  readonly togetherMs?: number;
}

export interface KeyedWindowRules extends WindowRules {
  /** Maximum number of keys with remembered events. */
  readonly keys: number;
}

interface Portion {
  readonly atMs: number;
  count: number;
}

export class SlidingWindow {
  readonly #rules: WindowRules;
  /** Events in the window, as portions that expire together, oldest first. */
  #portions: Portion[] = [];
  #count = 0;

  constructor(rules: WindowRules) {
    this.#rules = rules;
  }

  hasRoom(now: number, count = 1): boolean {
    this.#leave(now);
    return this.#count + count <= this.#rules.perWindow;
  }

  /** Milliseconds until `count` more events fit: 0 if they fit now, Infinity if `count` exceeds the limit. */
  retryAfterMs(now: number, count = 1): number {
    if (this.hasRoom(now, count)) return 0;
    let over = this.#count + count - this.#rules.perWindow;
    for (const portion of this.#portions) {
      over -= portion.count;
      if (over <= 0) return portion.atMs + this.#rules.windowMs - now;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Counts events in the window. Returns true if the events started a new portion. */
  record(now: number, count = 1): boolean {
    this.#leave(now);
    this.#count += count;
    const last = this.#portions.at(-1);
    if (last !== undefined && now - last.atMs < (this.#rules.togetherMs ?? 0)) {
      last.count += count;
      return false;
    }
    // Most sliding windows have a single portion. An array that grows from empty would allocate room for seventeen.
    if (last === undefined) this.#portions = [{ atMs: now, count }];
    else this.#portions.push({ atMs: now, count });
    return true;
  }

  /** Counts the events if the window has room, and returns 0; otherwise returns the milliseconds until they fit. */
  take(now: number, count = 1): number {
    const waitMs = this.retryAfterMs(now, count);
    if (waitMs === 0) this.record(now, count);
    return waitMs;
  }

  /** Removes the last event of the window. Returns true if the window is now empty. */
  forgive(): boolean {
    const last = this.#portions.at(-1);
    if (last === undefined) return true;
    last.count -= 1;
    this.#count -= 1;
    if (last.count === 0) this.#portions.pop();
    return this.#portions.length === 0;
  }

  isEmpty(now: number): boolean {
    this.#leave(now);
    return this.#portions.length === 0;
  }

  #leave(now: number): void {
    const { windowMs } = this.#rules;
    let gone = 0;
    for (let first = this.#portions[0]; first !== undefined && now - first.atMs >= windowMs; ) {
      this.#count -= first.count;
      gone += 1;
      first = this.#portions[gone];
    }
    if (gone > 0) this.#portions.splice(0, gone);
  }
}

class KeyedWindow extends SlidingWindow {
  readonly key: string;
  node: ListNode<KeyedWindow> | null = null;

  constructor(key: string, rules: WindowRules) {
    super(rules);
    this.key = key;
  }
}

export class SlidingWindows {
  readonly #rules: KeyedWindowRules;
  readonly #windows = new Map<string, KeyedWindow>();
  /**
   * Ordered by latest portion, so that the first window expires first. Empty windows are deleted when accessed. The map has the same order,
   * but finding its first entry means stepping over all deleted entries.
   */
  readonly #order = new LinkedSet<KeyedWindow>();

  constructor(rules: KeyedWindowRules) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#windows.size;
  }

  hasRoom(key: string, now: number, count = 1): boolean {
    return this.retryAfterMs(key, now, count) === 0;
  }

  /** Milliseconds until `count` more events fit: 0 if they fit now, Infinity if `count` exceeds the limit. */
  retryAfterMs(key: string, now: number, count = 1): number {
    const window = this.#windows.get(key);
    if (window === undefined) return count <= this.#rules.perWindow ? 0 : Number.POSITIVE_INFINITY;
    if (window.isEmpty(now)) this.#delete(window);
    return window.retryAfterMs(now, count);
  }

  record(key: string, now: number, count = 1): void {
    const window = this.#windows.get(key) ?? new KeyedWindow(key, this.#rules);
    if (!window.record(now, count)) return;
    this.#windows.set(key, window);
    // Moves the key's window to the end of the list, because it now has the latest portion.
    this.#order.delete(window.node);
    window.node = this.#order.add(window);
    this.#forget(now);
  }

  /** Counts the events if the key's window has room, and returns 0; otherwise returns the milliseconds until they fit. */
  take(key: string, now: number, count = 1): number {
    const waitMs = this.retryAfterMs(key, now, count);
    if (waitMs === 0) this.record(key, now, count);
    return waitMs;
  }

  /** Removes the last event of a key. Returns false if the key has no events. */
  forgive(key: string): boolean {
    const window = this.#windows.get(key);
    if (window === undefined) return false;
    // An empty window is deleted, so that a key without events cannot displace keys with events.
    if (window.forgive()) this.#delete(window);
    return true;
  }

  #forget(now: number): void {
    for (let oldest = this.#order.first; oldest !== null; oldest = this.#order.first) {
      if (this.#windows.size <= this.#rules.keys && !oldest.isEmpty(now)) return;
      this.#delete(oldest);
    }
  }

  #delete(window: KeyedWindow): void {
    this.#windows.delete(window.key);
    this.#order.delete(window.node);
  }
}
