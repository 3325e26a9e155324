// Pauses between retries: the shared backoff rules with state, clock and randomness.
import { afterConnect, afterFailure, type BackoffRules, CALM } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';

/**
 * Upper bound of the first pause, drawn from zero up. Later pauses are up to twice as long, or a quarter of the time without a connection
 * if longer.
 */
const RECONNECT_MIN_MS = 500;
/**
 * Maximum pause between two attempts.
 * @limit tunnels: Reconnection, longest pause between attempts | the client retries
 */
const RECONNECT_MAX_MS = 30_000;
/** Duration after which a connection counts as stable and resets the pause between reconnects. */
const RECONNECT_STABLE_AFTER_MS = 5000;

export class Backoff {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #rules: BackoffRules;
  #state = CALM;

  /** `maxMs` is the maximum pause between attempts to connect. */
  constructor(clock: Clock, random: () => number, maxMs: number = RECONNECT_MAX_MS) {
    this.#clock = clock;
    this.#random = random;
    this.#rules = {
      minMs: RECONNECT_MIN_MS,
      maxMs,
      stableAfterMs: RECONNECT_STABLE_AFTER_MS,
    };
  }

  /** Number of consecutive failed attempts to connect. */
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
