// How often each address was refused in the last window. The table is bounded: the address seen first leaves first.

interface FailureRules {
  readonly perWindow: number;
  readonly windowMs: number;
  readonly addressesMax: number;
}

type FailureVerdict = { readonly allowed: true } | { readonly allowed: false; readonly retryAfterMs: number };

export class FailureWindow {
  readonly #rules: FailureRules;
  /** In the order of their start, so that the oldest is always the first. */
  readonly #windows = new Map<string, { readonly startedAt: number; failures: number }>();

  constructor(rules: FailureRules) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#windows.size;
  }

  check(address: string, now: number): FailureVerdict {
    const window = this.#windows.get(address);
    if (window === undefined) return { allowed: true };
    const retryAfterMs = window.startedAt + this.#rules.windowMs - now;
    if (retryAfterMs <= 0) {
      this.#windows.delete(address);
      return { allowed: true };
    }
    return window.failures < this.#rules.perWindow ? { allowed: true } : { allowed: false, retryAfterMs };
  }

  record(address: string, now: number): void {
    const window = this.#windows.get(address);
    if (window !== undefined && now - window.startedAt < this.#rules.windowMs) {
      window.failures += 1;
      return;
    }
    this.#windows.delete(address);
    this.#windows.set(address, { startedAt: now, failures: 1 });
    this.#evict(now);
  }

  /** One failure was none. false: none is counted. */
  forgive(address: string): boolean {
    const window = this.#windows.get(address);
    if (window === undefined) return false;
    window.failures -= 1;
    // Nothing is known of it any more: who comes and goes must not push out those of whom something is.
    if (window.failures === 0) this.#windows.delete(address);
    return true;
  }

  #evict(now: number): void {
    for (const [address, window] of this.#windows) {
      const isOver = now - window.startedAt >= this.#rules.windowMs;
      if (!isOver && this.#windows.size <= this.#rules.addressesMax) return;
      this.#windows.delete(address);
    }
  }
}
