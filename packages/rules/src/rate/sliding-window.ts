// A limit of events, failures or bytes in any stretch of time of one length. A single window, or one for each key of a bounded table that forgets the key
// with the oldest event first.
import { LinkedSet, type ListNode } from '../collections/linked-set.ts';

export interface WindowRules {
  readonly perWindow: number;
  readonly windowMs: number;
  /**
   * Events that follow another within this time count as if they had come with it, so that the list of a window stays short. As long as the window
   * itself: a window begins with its first event and ends as a whole. 0 unless told otherwise: each event leaves by itself.
   */
  readonly togetherMs?: number;
}

export interface KeyedWindowRules extends WindowRules {
  /** Keys that are remembered. */
  readonly keys: number;
}

interface Portion {
  readonly atMs: number;
  count: number;
}

export class SlidingWindow {
  readonly #rules: WindowRules;
  /** Oldest first. */
  #portions: Portion[] = [];
  #count = 0;

  constructor(rules: WindowRules) {
    this.#rules = rules;
  }

  hasRoom(now: number, count = 1): boolean {
    this.#leave(now);
    return this.#count + count <= this.#rules.perWindow;
  }

  /** Milliseconds until there is room for so many more: 0 if there is room now, Infinity if `count` is above the limit. */
  retryAfterMs(now: number, count = 1): number {
    if (this.hasRoom(now, count)) return 0;
    let over = this.#count + count - this.#rules.perWindow;
    for (const portion of this.#portions) {
      over -= portion.count;
      if (over <= 0) return portion.atMs + this.#rules.windowMs - now;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** true if the events began a portion of their own. */
  record(now: number, count = 1): boolean {
    this.#leave(now);
    this.#count += count;
    const last = this.#portions.at(-1);
    if (last !== undefined && now - last.atMs < (this.#rules.togetherMs ?? 0)) {
      last.count += count;
      return false;
    }
    // Most windows never have a second portion, and a list that grows from empty has room for seventeen at once.
    if (last === undefined) this.#portions = [{ atMs: now, count }];
    else this.#portions.push({ atMs: now, count });
    return true;
  }

  /** Counts the events if there is room, and returns 0; else the milliseconds until there is room. */
  take(now: number, count = 1): number {
    const waitMs = this.retryAfterMs(now, count);
    if (waitMs === 0) this.record(now, count);
    return waitMs;
  }

  /** Takes back the last event. true if the window is empty now. */
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
   * In the order of their latest portions, so that the window that is over first is the first. An empty window is deleted when it is looked at. The
   * map has the same order, but finding its first entry takes a step for each deleted one.
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

  /** Milliseconds until there is room for so many more: 0 if there is room now, Infinity if `count` is above the limit. */
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
    // The window has the latest portion now.
    this.#order.delete(window.node);
    window.node = this.#order.add(window);
    this.#forget(now);
  }

  /** Counts the events if there is room, and returns 0; else the milliseconds until there is room. */
  take(key: string, now: number, count = 1): number {
    const waitMs = this.retryAfterMs(key, now, count);
    if (waitMs === 0) this.record(key, now, count);
    return waitMs;
  }

  /** Takes back the last event of a key. false if the key has no events. */
  forgive(key: string): boolean {
    const window = this.#windows.get(key);
    if (window === undefined) return false;
    // A key that comes and goes must not push out those of which something is known.
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
