// The client's side of health: results of probes go in, out comes what the edge must be told. Only changes are told.

/** What the edge is told; of a failing service also how often in a row, and why the last time. */
export type HealthReport =
  | { readonly healthy: true }
  | { readonly healthy: false; readonly reason: string; readonly consecutiveFailures: number };

/** `unknown`: nothing could be told yet. */
export type ProbedHealth = 'unknown' | 'healthy' | 'unhealthy';

const HEALTHY: HealthReport = { healthy: true };

export class ProbeStreak {
  readonly #maxFailed: number;
  #told: ProbedHealth = 'unknown';
  /** Since the last success, whatever was told. */
  #failures = 0;
  #lastReason = '';

  /** `maxFailed`: failures in a row that make a service unhealthy. */
  constructor({ maxFailed }: { readonly maxFailed: number }) {
    this.#maxFailed = maxFailed;
  }

  get health(): ProbedHealth {
    return this.#told;
  }

  /** null: nothing new. */
  succeeded(): HealthReport | null {
    this.#failures = 0;
    if (this.#told === 'healthy') return null;
    this.#told = 'healthy';
    return HEALTHY;
  }

  /** null: nothing new. */
  failed(reason: string): HealthReport | null {
    this.#failures += 1;
    this.#lastReason = reason;
    if (this.#told === 'unhealthy' || this.#failures < this.#maxFailed) return null;
    this.#told = 'unhealthy';
    return this.#unhealthy();
  }

  /** For an edge that knows nothing of what was told before; null: there is nothing to tell yet. */
  toldAnew(): HealthReport | null {
    if (this.#told === 'unknown') return null;
    return this.#told === 'healthy' ? HEALTHY : this.#unhealthy();
  }

  #unhealthy(): HealthReport {
    return { healthy: false, reason: this.#lastReason, consecutiveFailures: this.#failures };
  }
}
