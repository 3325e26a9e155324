// How long to wait before the next try: the rule of core, with its state, the clock and chance.
import { afterConnect, afterFailure, CALM } from '@tunnel/core';
import { LIMITS } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';

const RULES = {
  minMs: LIMITS.RECONNECT_MIN_MS,
  maxMs: LIMITS.RECONNECT_MAX_MS,
  stableAfterMs: LIMITS.RECONNECT_STABLE_AFTER_MS,
};

export class RetryPace {
  readonly #clock: Clock;
  readonly #random: () => number;
  #state = CALM;

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Failures in a row so far. */
  get failures(): number {
    return this.#state.failures;
  }

  connected(): void {
    this.#state = afterConnect(this.#state, this.#clock.monotonic());
  }

  nextDelayMs(): number {
    const { state, delayMs } = afterFailure(this.#state, this.#clock.monotonic(), this.#random(), RULES);
    this.#state = state;
    return delayMs;
  }
}
