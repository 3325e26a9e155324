// How long to wait before the next try: the shared rule of pauses, with its state, the clock and chance.
import { afterConnect, afterFailure, type BackoffRules, CALM } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';

export class Backoff {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #rules: BackoffRules;
  #state = CALM;

  /** `maxMs`: the longest wait. */
  constructor(clock: Clock, random: () => number, maxMs: number = CLIENT_LIMITS.RECONNECT_MAX_MS) {
    this.#clock = clock;
    this.#random = random;
    this.#rules = {
      minMs: CLIENT_LIMITS.RECONNECT_MIN_MS,
      maxMs,
      stableAfterMs: CLIENT_LIMITS.RECONNECT_STABLE_AFTER_MS,
    };
  }

  /** Failures in a row so far. */
  get failures(): number {
    return this.#state.failures;
  }

  connected(): void {
    this.#state = afterConnect(this.#state, this.#clock.monotonic());
  }

  nextDelayMs(): number {
    const { state, delayMs } = afterFailure(this.#state, this.#clock.monotonic(), this.#random(), this.#rules);
    this.#state = state;
    return delayMs;
  }
}
